# SPDX-License-Identifier: Apache-2.0
"""The few rules by which all entry points refuse arguments, so that the sentences are alike.

A parameter that no backend serves exists in our signatures all the same: the refusal is then ours
and names it, instead of an interpreter's complaint about an unexpected keyword.
"""
from . import _config, errors


def unless_default(**arguments):
    """Name the first argument that is not at its default; each is given as (value, default)."""
    for name, (value, default) in arguments.items():
        if value is default or (default is not None and type(value) in (bool, int, float, str)
                                and value == default):
            continue
        shown = f"is {value!r}" if isinstance(value, (bool, int, float, str)) else "is given"
        raise errors.Unsupported(
            f"{name} {shown}: not supported by any backend, pass {default!r}", name, value)


def positional(function, extra, keywords):
    """FlashAttention-2 and -3 disagree on what follows here, so a name has to be given."""
    raise TypeError(
        f"{function} takes no further positional arguments ({len(extra)} given too many): pass "
        f"them by name, {keywords}")


def one_name(**given):
    """The value of the one argument that is not None; they are names for the same thing."""
    found = [(name, value) for name, value in given.items() if value is not None]
    if len(found) > 1:
        raise TypeError(f"{found[0][0]} and {found[1][0]} name the same argument: pass one of them")
    return found[0][1] if found else None


def length(value, name):
    """(tensor, int) of a length that may be either; both None when it was not given."""
    if value is None:
        return None, None
    if hasattr(value, "__index__") and not getattr(value, "shape", ()):
        return None, _config.integer(value, name, _config.INT64)
    return value, None


def kv_pair(cache, name):
    """K and V of a (k, v) pair or of one tensor with 2 in dimension 1. Views, nothing is copied."""
    if isinstance(cache, (tuple, list)):
        if len(cache) != 2:
            raise errors.InvalidArgument(
                f"{name} has {len(cache)} members: a pair (k, v) is needed", name)
        return cache
    shape = getattr(cache, "shape", None)
    if shape is None or len(shape) != 5 or shape[1] not in (1, 2):
        raise errors.InvalidArgument(
            f"{name} has shape {shape and tuple(shape)}: a pair (k, v) or one tensor (pages, 2, "
            "...) of 5 dimensions is needed", name)
    if shape[1] == 1:
        raise errors.Unsupported(
            f"{name} has 1 in dimension 1 (K and V in one, MLA): not supported by any backend, 2 "
            "is needed", name)
    try:
        return cache[:, 0], cache[:, 1]
    except (TypeError, NotImplementedError):
        raise errors.InvalidArgument(
            f"{name} is a {type(cache).__name__} that cannot be sliced: pass a pair (k, v)",
            name) from None
