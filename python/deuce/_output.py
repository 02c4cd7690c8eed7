# SPDX-License-Identifier: Apache-2.0
"""Makes output tensors of the same framework, on the same device, as the query.

Used when the caller passes no `out` or `softmax_lse`. No framework is imported for this: a torch
tensor can only come from a process that has torch loaded, and so on. A query whose 16- or 8-bit
floats are held as plain integers gets an output of plain integers.
"""
import math
import sys

from . import _tensor, errors


def allocator(like, shape, dtype, name, integers):
    """A function that maps a query to a new, uninitialised tensor of this shape and dtype.

    like: a query of the kind to come. integers: it holds its floats as plain integers.
    name: the argument to ask for when its framework cannot make a tensor.
    """
    storage = "uint16" if integers and dtype in ("float16", "bfloat16") else dtype
    make = {"torch": _torch, "numpy": _numpy, "buffer": _buffer}.get(_tensor.kind_of(like),
                                                                     _array_api)
    return make(like, tuple(shape), storage, name)


def _torch(_, shape, dtype, __):
    kind = getattr(sys.modules["torch"], dtype)
    return lambda query: query.new_empty(shape, dtype=kind)


def _numpy(like, shape, dtype, name):
    numpy = sys.modules["numpy"]
    if dtype == like.dtype.name:
        kind = like.dtype
    elif dtype != "bfloat16":
        kind = numpy.dtype(dtype)
    else:
        try:
            from ml_dtypes import bfloat16 as kind
        except ImportError:
            raise errors.InvalidArgument(
                f"{name} is required: NumPy has no bfloat16 without the package ml_dtypes; pass a "
                "uint16 array", name) from None
    return lambda query: numpy.empty(shape, kind)


def _buffer(like, shape, dtype, name):
    form = {"float32": "f", "uint16": "H"}.get(dtype)
    if form is None or 0 in shape:
        raise _required(like, shape, dtype, name)
    size = math.prod(shape) * (4 if form == "f" else 2)
    return lambda query: memoryview(bytearray(size)).cast(form, shape)


def _array_api(like, shape, dtype, name):
    namespace = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    kind = getattr(namespace, dtype, None)
    if kind is None:
        raise _required(like, shape, dtype, name)
    return lambda query: namespace.empty(shape, dtype=kind, device=query.device)


def _required(like, shape, dtype, name):
    return errors.InvalidArgument(
        f"{name} is required: a {type(like).__name__} cannot make a {dtype} tensor of shape "
        f"{shape}; pass a writable one", name)
