# SPDX-License-Identifier: Apache-2.0
"""`python -m deuce`: versions, backends and shapes of the library this package loads."""

import collections
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


def _names(dtypes):
    return "any" if len(dtypes) == len(_abi.DTYPES) else ", ".join(dtypes)


def _merged(pairs):
    """(value, keys) of a {key: list} dict, the keys of equal lists together."""
    by_value = collections.defaultdict(list)
    for key, value in pairs.items():
        by_value[tuple(value)].append(key)
    return by_value.items()


def _shape_lines():
    """One line for each set of q dtypes, KV dtypes and head dims that is accepted as a whole."""
    dims = collections.defaultdict(list)
    for row in deuce.shapes():
        dims[row.backend, row.smallest_page, row.q_dtype, row.kv_dtype].append(row.head_dim)
    for head_dims, keys in _merged(dims):
        for place in sorted({key[:2] for key in keys}):
            kv_of = collections.defaultdict(list)
            for key in keys:
                if key[:2] == place:
                    kv_of[key[2]].append(key[3])
            for kv_dtypes, q_dtypes in _merged(kv_of):
                yield (
                    f"  {place[0]:10} q {_names(q_dtypes)}; KV {_names(kv_dtypes)}; "
                    f"head dim {_ranges(head_dims)}; pages of {place[1]} or more"
                )


def main():
    print(f"deuce {deuce.__version__} (ABI {_abi.ABI_VERSION}), {_library.library_path}")
    print(f"Python {sys.version.split()[0]}, headers in {deuce.get_include()}\n\nbackends")
    for name, answer in deuce.backends().items():
        print(f"  {name:10} {answer}")
    print(f"\nshapes (dtypes are {', '.join(_abi.DTYPES)})")
    print("\n".join(_shape_lines()))


if __name__ == "__main__":
    main()
