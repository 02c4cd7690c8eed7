# SPDX-License-Identifier: Apache-2.0
"""Deuce and its peers side by side on one GPU: one process, one set of tensors.

    PYTHONPATH=python python3 bench/peers/gpu.py --out bench/results/gpu-peers.json

Outputs must agree before anything is timed. A measurement is the replay of a CUDA graph whose
launches rotate over caches larger than four times the L2; libraries take turns, and each
library's best way is the one reported. Needs torch; peers that are not installed are named.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import torch

import deuce
from gpu_cases import CASES, Tensors
from gpu_ways import WAYS
from peer_common import add_case_option, best_ways, run_facts, selected

TOLERANCE = {"bfloat16": 0.02, "float8_e4m3fn": 0.1}  # of the largest output; peers round q to fp8
MIN_LAUNCHES = 20  # of one graph: the cost of replaying it is spread over them
ROUNDS = 15        # replays of each way, in turns


class Refused(Exception):
    """A peer does not run a shape; the text is its own."""


def capture(call, copies, stream):
    """(graph, launches): each launch reads another copy. Warmed up on the same stream."""
    launches = max(copies, MIN_LAUNCHES)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for copy in range(min(copies, 3)):
            call(copy)
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(launches):
                call(i % copies)
    return graph, launches


def prepare(way, tensors, wanted, stream):
    """A graph of the way whose first output agrees with the judge."""
    try:
        with torch.cuda.stream(stream):
            call = way.prepare(tensors)
            out = call(0).float()
            stream.synchronize()
    except Exception as error:  # whatever a peer raises, its words go into the table
        text = str(error).strip().splitlines()
        words = re.sub(r"\S*/", "", text[0]) if text else ""  # no paths of this machine
        raise Refused(f"{type(error).__name__}: {words}"[:200]) from error
    found = out[[0, -1]]
    error = float((found - wanted).abs().max() / wanted.abs().max())
    if not error <= TOLERANCE[tensors.case.kv_dtype]:
        raise Refused(f"differs by {error:.3g} of the largest output")
    return (*capture(call, tensors.copies, stream), error)


def time_replays(graphs, stream):
    """Microseconds of a launch, per way: ROUNDS replays each, in turns."""
    samples = {name: [] for name in graphs}
    for index in range(ROUNDS + 2):
        for name, (graph, launches, _) in graphs.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            with torch.cuda.stream(stream):
                begin.record()
                graph.replay()
                end.record()
            end.synchronize()
            if index >= 2:
                samples[name].append(begin.elapsed_time(end) * 1e3 / launches)
    return samples


def summary(samples, kv_bytes):
    ordered = sorted(samples)
    median = statistics.median(ordered)
    return {"median_us": median, "min_us": ordered[0], "max_us": ordered[-1],
            "tb_s": kv_bytes / median / 1e6}


def run_case(case, stream):
    """One row: shape, agreement, every way's numbers, and what was refused."""
    tensors = Tensors(case)
    wanted = tensors.expected()
    graphs, refused = {}, {}
    for way in WAYS:
        if not way.applies(case):
            continue
        try:
            graphs[way.name] = prepare(way, tensors, wanted, stream)
        except Refused as error:
            refused[way.name] = str(error)
    samples = time_replays(graphs, stream)
    row = {"name": case.name, "kv_bytes": case.kv_bytes, "copies": tensors.copies,
           "kv_lens": case.lengths, "refused": refused,
           "error": {name: graph[2] for name, graph in graphs.items()},
           "ways": {name: summary(times, case.kv_bytes) for name, times in samples.items()}}
    row["best"] = best_ways(WAYS, row["ways"])
    return row


def version_of(module):
    try:
        return getattr(__import__(module), "__version__", "found")
    except Exception as error:  # a broken install is as good as none, but says so
        return f"not here: {type(error).__name__}: {error}"[:120]


def machine():
    """What the numbers depend on."""
    query = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu"
    smi = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                         capture_output=True, text=True)
    return {"gpu": dict(zip(query.split(","), smi.stdout.strip().split(", "))),
            **run_facts(), "deuce": deuce.__version__, "torch": torch.__version__,
            "cudnn": torch.backends.cudnn.version(), "flashinfer": version_of("flashinfer"),
            "fa3": version_of("fa3_fwd_interface")}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="JSON file")
    add_case_option(parser)
    options = parser.parse_args()
    result = {"schema": 1, "machine": machine(), "rows": []}
    stream = torch.cuda.Stream()
    for case in selected(CASES, options.case):
        row = run_case(case, stream)
        result["rows"].append(row)
        deuce.clear_plans()
        torch.cuda.empty_cache()
        print(f"{case.name}", flush=True)
        for name, numbers in row["ways"].items():
            print(f"  {name:26} {numbers['median_us']:9.2f} us {numbers['tb_s']:6.3f} TB/s "
                  f"error {row['error'][name]:.1e}")
        for name, reason in row["refused"].items():
            print(f"  {name:26} {reason}")
        if options.out:  # after every case: a run that is cut short keeps what it measured
            pathlib.Path(options.out).write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(machine()), file=sys.stderr)


if __name__ == "__main__":
    main()
