# SPDX-License-Identifier: Apache-2.0
"""Deuce, PyTorch and NumPy side by side on this machine's CPU: one process, one set of tensors.

    PYTHONPATH=python build/venv/bin/python bench/peers/cpu.py --out bench/results/cpu-peers.json

Outputs must agree before anything is timed. Caches are rotated so that calls read from memory, the
libraries take turns in bursts, and each library's best way of doing the work is the one
reported. Needs torch and numpy (scripts/install_packages --peers).
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

THREADS = len(os.sched_getaffinity(0))
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, str(THREADS))

import numpy as np  # noqa: E402  after the thread counts, which it reads once
import torch  # noqa: E402

import deuce  # noqa: E402
from deuce import _library  # noqa: E402
from peer_cases import CASES, Tensors  # noqa: E402
from peer_common import add_case_option, best_ways, run_facts, selected  # noqa: E402
from peer_ways import WAYS, expected  # noqa: E402

TOLERANCE = 0.02  # of the largest output: bf16 probabilities in one library, fp32 in another


def check_agreement(tensors, ways):
    """Largest error of each way against NumPy in fp32, as a share of the largest output."""
    wanted = expected(tensors)
    found = {}
    for way in ways:
        out = way.prepare(tensors)(0)
        error = float(np.abs(out.float().numpy() - wanted).max() / np.abs(wanted).max())
        if not error <= TOLERANCE:
            raise SystemExit(f"{tensors.case.name}: {way.name} differs by {error:.3g} of the "
                             "largest output")
        found[way.name] = error
    return found


def measure(tensors, ways, seconds):
    """Seconds of each timed call, per way: bursts in turn until each had its share of time."""
    calls = {way.name: way.prepare(tensors) for way in ways}
    samples = {name: [] for name in calls}
    spent = dict.fromkeys(calls, 0.0)
    copy = 0
    while any(spent[name] < seconds or len(samples[name]) < 5 for name in calls):
        for name, call in calls.items():
            if spent[name] >= seconds and len(samples[name]) >= 5:
                continue
            burst = max(2, min(50, int(0.1 / (samples[name][-1] if samples[name] else 0.1))))
            for index in range(-1, burst):  # the first of a burst wakes threads and is not counted
                start = time.perf_counter()
                call(copy % tensors.copies)
                elapsed = time.perf_counter() - start
                copy += 1
                spent[name] += elapsed
                if index >= 0:
                    samples[name].append(elapsed)
    return samples


def summary(times, bytes_read, roof):
    """Median and the middle 80 % of the samples, with KV bytes per second."""
    ordered = sorted(times)
    median = statistics.median(ordered)
    result = {"median_us": median * 1e6, "p10_us": ordered[len(ordered) // 10] * 1e6,
              "p90_us": ordered[-1 - len(ordered) // 10] * 1e6, "samples": len(ordered),
              "gb_s": bytes_read / median / 1e9}
    if roof:
        result["of_roof"] = result["gb_s"] / roof
    return result


def read_roof():
    """GB/s of the machine by the library's own measurement, None where the tool is not built."""
    tool = _library.library_path.resolve().parent.parent / "bin" / "deuce"
    if not tool.is_file():
        return None
    answer = subprocess.run([str(tool), "info", "--roof", "--json"], check=True,
                            capture_output=True)
    return json.loads(answer.stdout)["roof_bytes_per_s"] / 1e9


def machine():
    """What the numbers depend on."""
    names = [line.partition(":")[2].strip()
             for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cpu": names[0] if names else platform.machine(), "threads": THREADS,
            "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
            **run_facts(), "deuce": deuce.__version__, "torch": torch.__version__,
            "numpy": np.__version__, "python": platform.python_version()}


def run_case(case, seconds, roof):
    """One row: shape, agreement, and every way's numbers."""
    tensors = Tensors(case)
    ways = [way for way in WAYS if way.applies(case)]
    row = {"name": case.name, "dtype": case.dtype, "q_heads": case.q_heads,
           "kv_heads": case.kv_heads, "head_dim": case.head_dim, "kv_lens": case.lengths,
           "kv_bytes": case.kv_bytes, "copies": tensors.copies,
           "error": check_agreement(tensors, ways)}
    samples = measure(tensors, ways, seconds)
    row["ways"] = {name: summary(times, case.kv_bytes, roof) for name, times in samples.items()}
    row["best"] = best_ways(ways, row["ways"])
    return row


def write(result, path):
    """Write the rows in the order of the table; those of an earlier run that are not new stay."""
    order = [case.name for case in CASES]
    rows = {row["name"]: row for row in result["rows"]}
    if path.is_file():
        rows = {**{row["name"]: row for row in json.loads(path.read_text())["rows"]}, **rows}
    result["rows"] = [rows[name] for name in order if name in rows]
    path.write_text(json.dumps(result, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="JSON file; rows of the same name in it are replaced")
    add_case_option(parser)
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="time per library and case (default 1)")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    roof = read_roof()
    result = {"schema": 1, "machine": machine(), "roof_gb_s": roof, "rows": []}
    for case in selected(CASES, options.case):
        print(f"{case.name} ...", file=sys.stderr, flush=True)
        result["rows"].append(run_case(case, options.seconds, roof))
        for library, way in result["rows"][-1]["best"].items():
            numbers = result["rows"][-1]["ways"][way]
            print(f"  {way:28} {numbers['median_us']:10.1f} us {numbers['gb_s']:7.2f} GB/s",
                  file=sys.stderr)
    if options.out:
        write(result, pathlib.Path(options.out))


if __name__ == "__main__":
    main()
