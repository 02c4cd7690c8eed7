# SPDX-License-Identifier: Apache-2.0
"""What the side-by-side runs on a CPU and on a GPU share. Imports no library that is measured."""
import datetime
import json
import pathlib
import subprocess
from dataclasses import dataclass
from typing import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LENGTHS = {case["name"]: case["kv_lens"]
           for case in json.loads((ROOT / "data" / "decode_batches.json").read_text())["cases"]}


@dataclass(frozen=True)
class Way:
    """One way of one library. prepare(tensors) returns a function of the copy to read."""

    library: str
    name: str
    prepare: Callable
    applies: Callable = lambda case: True


def selected(cases, parts):
    """The cases whose name contains one of `parts`; all of them without parts."""
    return [case for case in cases if not parts or any(part in case.name for part in parts)]


def best_ways(ways, numbers):
    """Per library the name of its way with the smallest median, of those that have numbers."""
    best = {}
    for way in ways:
        if way.name not in numbers:
            continue
        known = best.get(way.library)
        if known is None or numbers[way.name]["median_us"] < numbers[known]["median_us"]:
            best[way.library] = way.name
    return best


def run_facts():
    """When the numbers were made, and from which state of the source."""
    commit = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
                            capture_output=True, text=True).stdout.strip()
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "commit": commit}


def add_case_option(parser):
    parser.add_argument("--case", action="append",
                        help="only cases whose name contains this; repeatable")
