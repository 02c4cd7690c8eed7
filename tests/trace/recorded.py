# SPDX-License-Identifier: Apache-2.0
"""One run of `deuce trace` for the tests of what it writes."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

TOOL = os.environ["DEUCE_TOOL"]


class RecordedCase(unittest.TestCase):
    """Base and ping-pong of a small problem, in a folder that lives as long as the class."""

    arguments = ("--compare", "base,pingpong", "--kv-len", "1536", "--level", "full")

    @classmethod
    def setUpClass(cls):
        cls.holder = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.holder.name)
        run = subprocess.run([TOOL, "trace", *cls.arguments, "--out", cls.folder], capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise RuntimeError(run.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.holder.cleanup()

    def read(self, name):
        return (self.folder / name).read_bytes()

    def summary_totals(self):
        """[{shown event: (count, cycles)}] of summary.txt, one for each run."""
        runs = []
        for text in self.read("summary.txt").decode().split("\nwho ")[1:]:
            table = {}
            for line in text.splitlines()[1:]:
                row = re.fullmatch(r"(\w+(?: q| pipe)?)\s+(\w+(?: \w+)?)\s+(\d+)\s+(\d+)\s+\d+", line)
                if not row:
                    break
                table[row[1], row[2]] = (int(row[3]), int(row[4]))
            runs.append(table)
        return runs


