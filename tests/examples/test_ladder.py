# SPDX-License-Identifier: Apache-2.0
"""The ladder stays what its README says: seven short steps, each with the cycles in the table."""
import os
import pathlib
import re
import subprocess
import unittest

LADDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ladder"
STEPS = sorted(LADDER.glob("0*.cpp"))


class Ladder(unittest.TestCase):
    def test_seven_steps_of_at_most_120_lines(self):
        self.assertEqual(len(STEPS), 7)
        for step in STEPS:
            self.assertLessEqual(len(step.read_text().splitlines()), 120, step.name)

    def test_the_readme_states_the_simulated_cycles(self):
        readme = (LADDER / "README.md").read_text()
        for step in STEPS:
            program = pathlib.Path(os.environ["DEUCE_LADDER"]) / f"ladder_{step.stem}"
            said = subprocess.run([program], capture_output=True, text=True, check=True).stdout
            cycles = int(re.search(r"(\d+) cycles", said).group(1))
            row = next(line for line in readme.splitlines() if f"`{step.name}`" in line)
            self.assertIn(f"| {cycles:,} |", row)

    def test_overlap_is_what_the_later_steps_buy(self):
        readme = (LADDER / "README.md").read_text()
        rows = [line for line in readme.splitlines() if re.match(r"\| `0[3-6]", line)]
        cycles = [int(row.split("|")[3].replace(",", "")) for row in rows]
        self.assertEqual(len(cycles), 4)
        self.assertEqual(cycles, sorted(cycles, reverse=True))


if __name__ == "__main__":
    unittest.main()
