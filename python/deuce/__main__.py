# SPDX-License-Identifier: Apache-2.0
"""`python -m deuce`: versions, backends and shapes of the library this package loads."""
import itertools
import sys

import deuce
from deuce import _abi, _library


def _ranges(numbers):
    """16..256 step 8 for a run of numbers, else the numbers themselves."""
    numbers = sorted(numbers)
    steps = {after - before for before, after in zip(numbers, numbers[1:])}
    if len(numbers) > 3 and len(steps) == 1:
        return f"{numbers[0]}..{numbers[-1]} step {steps.pop()}"
    return ", ".join(map(str, numbers))


def main():
    print(f"deuce {deuce.__version__} (ABI {_abi.ABI_VERSION}), {_library.library_path}")
    print(f"Python {sys.version.split()[0]}, headers in {deuce.get_include()}\n\nbackends")
    for name, answer in deuce.backends().items():
        print(f"  {name:10} {answer}")
    print("\nshapes\n  backend     q              KV             head dim            page")
    rows = itertools.groupby(deuce.shapes(), key=lambda row: (row[:3], row.smallest_page))
    for ((backend, q_dtype, kv_dtype), page), group in rows:
        dims = _ranges(row.head_dim for row in group)
        print(f"  {backend:10}  {q_dtype:13}  {kv_dtype:13}  {dims:18}  >= {page}")


if __name__ == "__main__":
    main()
