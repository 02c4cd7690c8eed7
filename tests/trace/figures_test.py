# SPDX-License-Identifier: Apache-2.0
"""The pictures in docs/figures are, byte for byte, what the commands of the docs draw; measured
parts come from the recorded results, and measured timelines from recorded traces."""
import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL = os.environ["DEUCE_TOOL"]
ROOT = pathlib.Path(os.environ["DEUCE_SOURCE"])
FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "bench" / "results"
LARGEST_TRACE = 100_000  # bytes of a trace that is kept in the repository

# {command: {picture of the docs: file that the command writes}}
COMMANDS = {
    ("trace", "--compare", "base,pingpong", "--write", "residency,schedule,svg"):
        {"residency": "residency", "schedule": "schedule", "timeline": "timeline"},
    ("trace", "--write", "edges,phases"): {"edges": "edges", "phases": "phases"},
    ("bench", "figure9", "--measured", str(RESULTS / "figure9-h200.json")):
        {"figure9": "figure9"},
    ("bench", "figure10", "--measured", str(RESULTS / "figure10-h200.json")):
        {"figure10": "figure10"},
    ("trace", "--from", str(RESULTS / "trace-h200-hd128-rows4.deucetrace"), "--write", "svg"):
        {"timeline_h200": "timeline"},
    ("trace", "--from", str(RESULTS / "trace-h200-hd64-rows64-base.deucetrace"),
     str(RESULTS / "trace-h200-hd64-rows64-pingpong.deucetrace"), "--write", "svg"):
        {"timeline_h200_warpgroups": "timeline"},
}


def draw(command, folder, name):
    """The picture that a command writes."""
    run = subprocess.run([TOOL, *command, "--out", folder], capture_output=True, text=True,
                         check=False)
    if run.returncode:
        raise AssertionError(f"deuce {' '.join(command)}: {run.stderr}")
    return (pathlib.Path(folder) / f"{name}.svg").read_bytes()


class Figures(unittest.TestCase):
    def test_every_picture_of_the_docs_has_a_command(self):
        drawn = {picture for pictures in COMMANDS.values() for picture in pictures}
        self.assertEqual({path.stem for path in FIGURES.glob("*.svg")}, drawn)

    def test_the_pictures_are_what_their_commands_draw(self):
        for command, pictures in COMMANDS.items():
            for picture, name in pictures.items():
                with self.subTest(figure=picture), tempfile.TemporaryDirectory() as folder:
                    kept = (FIGURES / f"{picture}.svg").read_bytes()
                    self.assertTrue(draw(command, folder, name) == kept,
                                    f"docs/figures/{picture}.svg: {' '.join(command)}")

    def test_a_picture_of_the_hopper_kernel_is_drawn_again_from_its_kept_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            recorded = ("trace", "--kernel", "hopper", "--compare", "base,pingpong",
                        "--rows", "64", "--kv-len", "8192", "--head-dim", "128", "--ctas", "1")
            first = draw(recorded, folder, "timeline")
            kept = [f"{folder}/{label}.deucetrace" for label in ("base", "ping-pong")]
            for path in kept:
                self.assertLess(pathlib.Path(path).stat().st_size, LARGEST_TRACE)
            command = ("trace", "--from", *kept, "--write", "svg")
            again = draw(command, f"{folder}/again", "timeline")
            self.assertTrue(first == again)

    def test_kept_traces_are_small_and_drawn(self):
        drawn = {argument for command in COMMANDS for argument in command}
        for path in RESULTS.glob("*.deucetrace"):
            with self.subTest(trace=path.name):
                self.assertLess(path.stat().st_size, LARGEST_TRACE)
                self.assertIn(str(path), drawn)


if __name__ == "__main__":
    unittest.main()
