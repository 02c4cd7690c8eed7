# SPDX-License-Identifier: Apache-2.0
"""The pictures in docs/figures are, byte for byte, what the commands of the docs draw; measured parts
come from the recorded results."""
import os
import pathlib
import subprocess
import tempfile
import unittest

TOOL = os.environ["DEUCE_TOOL"]
ROOT = pathlib.Path(os.environ["DEUCE_SOURCE"])
FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "bench" / "results"
COMMANDS = {
    ("trace", "--compare", "base,pingpong", "--write", "residency,schedule,svg"): ("residency", "schedule", "timeline"),
    ("trace", "--write", "edges,phases"): ("edges", "phases"),
    ("bench", "figure9", "--measured", str(RESULTS / "figure9-h200.json")): ("figure9",),
    ("bench", "figure10", "--measured", str(RESULTS / "figure10-h200.json")): ("figure10",),
}


class Figures(unittest.TestCase):
    def test_every_picture_of_the_docs_has_a_command(self):
        drawn = {name for names in COMMANDS.values() for name in names}
        self.assertEqual({path.stem for path in FIGURES.glob("*.svg")}, drawn)

    def test_the_pictures_are_what_their_commands_draw(self):
        for command, names in COMMANDS.items():
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run([TOOL, *command, "--out", folder], capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                for name in names:
                    with self.subTest(figure=name):
                        drawn = (pathlib.Path(folder) / f"{name}.svg").read_bytes()
                        self.assertTrue(
                            drawn == (FIGURES / f"{name}.svg").read_bytes(),
                            f"docs/figures/{name}.svg is not what `deuce {' '.join(command)}` draws",
                        )


if __name__ == "__main__":
    unittest.main()
