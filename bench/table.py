# SPDX-License-Identifier: Apache-2.0
"""Markdown tables from result files, so that no number in the documents is typed by hand.

    bench/table.py bench/results/cpu-peers.json                        print it
    bench/table.py bench/results/cpu-peers.json --into docs/benchmarks.md   replace it in the page

In the page the table stands between `<!-- FILE -->` and `<!-- end FILE -->`, FILE as given.
"""
import argparse
import json
import pathlib
import re


def micros(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def cell(row, library):
    """Median with the middle 80 % of the samples."""
    name = row["best"].get(library)
    if name is None:
        return "–"
    numbers = row["ways"][name]
    low, high = micros(numbers["p10_us"]), micros(numbers["p90_us"])
    return f"{micros(numbers['median_us'])} ({low}–{high})"


def peers_table(result):
    """One row per case: times, our bandwidth next to the roof, and how many times faster."""
    facts, roof = result["machine"], result["roof_gb_s"]
    lines = [
        f"{facts['cpu']}, {facts['threads']} threads, {facts['date']}, commit {facts['commit']}; "
        f"PyTorch {facts['torch']} ({facts['torch_cpu_capability']}), NumPy {facts['numpy']}, "
        f"Python {facts['python']}. Read roof {f'{roof:.1f} GB/s' if roof else 'not measured'}. "
        "Times in µs: median (10 %–90 % of the calls), Python included.", "",
        "| batch × keys, q heads : KV heads | Deuce | pages of 16 | PyTorch, its best way | NumPy "
        "| GB/s | of roof | PyTorch ÷ Deuce |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for row in result["rows"]:
        ours = row["ways"][row["best"]["deuce"]]
        torch_name = row["best"]["torch"]
        ratio = row["ways"][torch_name]["median_us"] / ours["median_us"]
        share = f"{ours['of_roof']:.0%}" if "of_roof" in ours else "–"
        lines.append(
            f"| {row['name']} | {cell(row, 'deuce')} | {cell(row, 'deuce pages')} | "
            f"{cell(row, 'torch')}, {torch_name.removeprefix('torch ')} | {cell(row, 'numpy')} | "
            f"{ours['gb_s']:.1f} | {share} | {ratio:.1f} |")
    return "\n".join(lines)


def gpu_peers_table(result):
    """One row per case: the best way of each library, and how many times faster than the best peer."""
    facts = result["machine"]
    gpu = facts["gpu"]
    lines = [
        f"{gpu['name']}, driver {gpu['driver_version']}, SM {gpu['clocks.sm']}, memory {gpu['clocks.mem']} before the run, "
        f"{facts['date']}, commit {facts['commit']}; PyTorch {facts['torch']}, cuDNN {facts['cudnn']}, "
        f"FlashInfer {facts['flashinfer']}, fa3-fwd. Times in µs: median of 15 graph replays.", "",
        "| batch × keys, q heads : KV heads | Deuce | pages of 64 | PyTorch, its best way | FA3 | FlashInfer XQA "
        "| TB/s | best peer ÷ Deuce | error: Deuce, worst peer |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for row in result["rows"]:
        def best(library):
            name = row["best"].get(library)
            return row["ways"][name]["median_us"] if name else None
        ours, peers = row["best"]["deuce"], ("torch", "fa3", "flashinfer")
        time = min(best("deuce"), best("deuce pages"))
        times = [best(peer) for peer in peers]
        worst = max(row["error"][row["best"][peer]] for peer in peers if peer in row["best"])
        cells = ["–" if value is None else micros(value) for value in times]
        torch_name = row["best"].get("torch", "").removeprefix("torch SDPA ")
        cells[0] += f", {torch_name}" if torch_name else ""
        lines.append(
            f"| {row['name']} | {micros(best('deuce'))} | {micros(best('deuce pages'))} | "
            f"{' | '.join(cells)} | {row['kv_bytes'] / time / 1e6:.2f} | "
            f"{min(value for value in times if value) / time:.2f} | "
            f"{row['error'][ours]:.1e}, {worst:.1e} |")
    return "\n".join(lines)


SETS = {"steady": "Steady", "latency": "Latency", "fp8": "fp8 (e4m3) cache",
        "rows": "More rows (16, 32, 64, 128 rows at head dim 128; 64 rows at 64)"}


def hopper_tables(result):
    """The sets of hopper_bench, each a table."""
    lines = [f"{result['device']}, driver {result['driver']}, {result['sources']}."]
    for name, title in SETS.items():
        if name not in result["sets"]:
            continue
        lines += ["", f"{title}:", "", "| case | µs | TB/s of KV | tile roof, µs | share | relative error |",
                  "|---|--:|--:|--:|--:|--:|"]
        lines += [f"| {case['name']} | {case['us']:.2f} | {case['tb_per_s']:.3f} | "
                  f"{case['tile_roof_us']:.2f} | {case['tile_roof_us'] / case['us']:.1%} | "
                  f"{case['relative_error']:.1e} |" for case in result["sets"][name]]
    return "\n".join(lines)


def table_of(result):
    if "sets" in result:
        return hopper_tables(result)
    return gpu_peers_table(result) if "gpu" in result["machine"] else peers_table(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("--into", help="Markdown page whose marked table is replaced")
    options = parser.parse_args()
    table = table_of(json.loads(pathlib.Path(options.result).read_text()))
    if not options.into:
        print(table)
        return
    page = pathlib.Path(options.into)
    begin, end = f"<!-- {options.result} -->", f"<!-- end {options.result} -->"
    text, count = re.subn(re.escape(begin) + ".*?" + re.escape(end),
                          lambda _: f"{begin}\n{table}\n{end}", page.read_text(), flags=re.S)
    if count != 1:
        raise SystemExit(f"{page} has {count} places marked {begin} ... {end}: one is needed")
    page.write_text(text)


if __name__ == "__main__":
    main()
