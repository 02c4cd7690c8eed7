# SPDX-License-Identifier: Apache-2.0
"""Makes a deuce_decode_config from Python values, refusing by name what C could not hold.

ctypes would cut a number to the width of its field without a word; nothing here does.
"""
import ctypes
import math
import operator

from . import _abi, errors

_FIELD_TYPES = dict(_abi.Config._fields_)
_INTEGER_BITS = {ctypes.c_int32: (31, 1), ctypes.c_uint32: (32, 0), ctypes.c_int64: (63, 1),
                 ctypes.c_uint64: (64, 0)}
INT64 = ctypes.c_int64
INT32_MAX = 2**31 - 1


def dtype_name(value, name):
    """The name of a dtype given as a string, torch.dtype, numpy.dtype or scalar type."""
    if isinstance(value, type):
        text = value.__name__
    else:
        text = getattr(value, "name", None) or str(value)
    text = text.rpartition(".")[2]
    if text not in _abi.DTYPES:
        raise errors.InvalidArgument(
            f"{name} is {value!r}: it must be one of {', '.join(_abi.DTYPES)}", name, value)
    return text


def _is_text_or_truth(value):
    return isinstance(value, (str, bytes, bool)) or getattr(
        getattr(value, "dtype", None), "kind", "") == "b"


def integer(value, name, kind=ctypes.c_int32):
    """A Python int that fits in the field, or InvalidArgument."""
    bits, signed = _INTEGER_BITS[kind]
    try:
        number = None if _is_text_or_truth(value) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise errors.InvalidArgument(f"{name} is {value!r}: an integer is needed", name,
                                     value)
    if not -signed * 2**bits <= number < 2**bits:
        raise errors.InvalidArgument(f"{name} is {number}: it does not fit in {bits + signed} bits",
                                     name, value)
    return number


def real(value, name):
    """A Python float, or InvalidArgument. Tensors are refused: reading one would wait for it."""
    if hasattr(value, "shape") and value.shape != () or hasattr(value, "data_ptr"):
        raise errors.InvalidArgument(f"{name} is a tensor: a number is needed", name)
    try:
        number = None if _is_text_or_truth(value) else float(value)
    except (TypeError, ValueError):
        number = None
    if number is None:
        raise errors.InvalidArgument(f"{name} is {value!r}: a number is needed", name, value)
    if number != 0.0 and ctypes.c_float(number).value == 0.0:
        raise errors.InvalidArgument(f"{name} is {number}: fp32, which it is computed in, has "
                                     "nothing between that and 0", name, value)
    return number


def softmax_scale(value, name="softmax_scale"):
    """The C value of a softmax scale: None means 1 / sqrt(head_dim), which C writes as 0."""
    if value is None:
        return 0.0
    scale = real(value, name)
    if scale == 0.0:
        raise errors.InvalidArgument(f"{name} is 0.0: it must be non-zero, or None for "
                                     "1 / sqrt(head_dim)", name, value)
    return scale


def factor(value, name):
    """A host factor of the scores or the output; C reads 0 as 1, so 0 cannot be said."""
    number = real(value, name)
    if number == 0.0 or not math.isfinite(number):
        raise errors.InvalidArgument(f"{name} is {number}: it must be finite and non-zero", name,
                                     value)
    return number


def backend_fields(value):
    """The config fields of a backend name; "emulator:hopper" names the emulated one as well."""
    name, colon, emulated = str(value).partition(":")
    known = _abi.BACKENDS.get(name)
    if known is None or (colon and (name != "emulator" or emulated not in ("blackwell", "hopper"))):
        raise errors.InvalidArgument(
            f"backend is {value!r}: it must be one of {', '.join(_abi.BACKENDS)}, "
            "emulator:blackwell, emulator:hopper", "backend", value)
    return {"backend": known, "emulated_backend": _abi.BACKENDS.get(emulated, 0)}


def window(value, name="window_size"):
    """(left, right) with None read as open."""
    try:
        left, right = value
    except (TypeError, ValueError):
        raise errors.InvalidArgument(f"{name} is {value!r}: a pair (left, right) is needed", name,
                                     value) from None
    return tuple(-1 if side is None else side for side in (left, right))


def make_config(**fields):
    """A Config of these fields, C's names. backend and the dtypes may be given by name."""
    if isinstance(fields.get("backend"), str):
        fields.update({**backend_fields(fields["backend"]),
                       **({"emulated_backend": fields["emulated_backend"]}
                          if fields.get("emulated_backend") else {})})
    config = _abi.Config()
    for name, value in fields.items():
        kind = _FIELD_TYPES.get(name)
        if kind is None or name == "struct_size":
            raise TypeError(f"{name!r} is not a field of deuce_decode_config: it has "
                            f"{', '.join(list(_FIELD_TYPES)[1:])}")
        if name.endswith("_dtype") and not isinstance(value, int):
            value = _abi.DTYPES[dtype_name(value, name)]
        elif name == "emulated_backend" and isinstance(value, str):
            value = _abi.BACKENDS.get(value, -1)
        elif name == "causal" and isinstance(value, bool):
            value = int(value)
        setattr(config, name,
                real(value, name) if kind is ctypes.c_float else integer(value, name, kind))
    return config


def bound(capacity):
    """A bound for a plan that covers a capacity: the next power of two, so that growing caches and
    batches reuse a plan. The live values are checked against the real capacity all the same."""
    return min(1 << max(capacity - 1, 0).bit_length(), INT32_MAX)
