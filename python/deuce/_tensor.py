# SPDX-License-Identifier: Apache-2.0
"""Reads tensors of any framework in place: address, shape, strides, dtype, device. Never copies.

Understood are torch tensors and NumPy arrays by their own attributes, then anything with
__dlpack__, __cuda_array_interface__ or the buffer protocol. read() is on the path of every call
and does as little as possible; describe() turns what it found into a Layout, once per new shape.
"""
import ctypes
import math
import sys

from . import _abi, errors


class Layout:
    """What a tensor looks like, apart from its address.

    name: str, the argument it was passed as.
    dtype: str, the name NumPy and torch share ("bfloat16", "int32", ...).
    shape, strides: tuples of int, strides in elements.
    device: (DLPack device type, device index), (1, 0) is CPU memory.
    writable: bool.
    """

    __slots__ = ("name", "dtype", "shape", "strides", "device", "writable")

    def __init__(self, name, dtype, shape, strides, device=(_abi.DEVICE_CPU, 0), writable=True):
        self.name, self.dtype = name, dtype
        self.shape, self.strides = tuple(shape), tuple(strides)
        self.device, self.writable = device, writable

    @property
    def contiguous(self):
        dense = dense_strides(self.shape)
        return all(extent <= 1 or stride == step
                   for extent, stride, step in zip(self.shape, self.strides, dense))

    @property
    def size_bytes(self):
        """Bytes of a contiguous tensor; None for a dtype of unknown size."""
        digits = "".join(filter(str.isdigit, self.dtype.partition("_")[0]))
        return math.prod(self.shape) * int(digits) // 8 if digits else None


def same_device(one, other):
    """Whether two devices are one; a CUDA array that cannot name its device (-1) matches any."""
    return one == other or (one[0] == other[0] and -1 in (one[1], other[1]))


def dense_strides(shape):
    """Strides in elements of a contiguous tensor."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


# ---- one reader per kind of tensor: (address, key, owner) ----
# The key names the kind and everything a Layout needs, so that equal keys have equal layouts; the
# owner, if any, keeps the memory alive until the call has returned, beside the tensor itself.

def _read_torch(tensor):
    return tensor.data_ptr(), (tensor.dtype, tensor.shape, tensor.stride(), tensor.device), None


def _read_numpy(array):
    return (array.__array_interface__["data"][0],
            (array.dtype, array.shape, array.strides, array.flags.writeable), None)


# The address is the first field behind the object header of NumPy's array struct, which compiled
# extensions rely on through PyArray_DATA. Reading it there takes 0.3 microseconds, the dictionary
# of __array_interface__ 1.5: more than all the rest of a tensor.
_NUMPY_DATA_OFFSET = object.__basicsize__


def _read_numpy_struct(array, at=ctypes.c_void_p.from_address):
    return (at(id(array) + _NUMPY_DATA_OFFSET).value or 0,
            (array.dtype, array.shape, array.strides, array.flags.writeable), None)


def _numpy_reader(array):
    """The quick reader where it agrees with NumPy's own answer, else the slow one."""
    if sys.implementation.name == "cpython" and (
            _read_numpy_struct(array)[0] == array.__array_interface__["data"][0]):
        return _read_numpy_struct
    return _read_numpy


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class _DLManagedTensorVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", _DLTensor)]


_DLPACK_READ_ONLY, _DLPACK_COPIED = 1, 2
_DLPACK_DTYPES = {(2, 32): "float32", (2, 16): "float16", (4, 16): "bfloat16",
                  (10, 8): "float8_e4m3fn", (12, 8): "float8_e5m2", (0, 32): "int32",
                  (1, 32): "uint32", (1, 16): "uint16", (1, 8): "uint8"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = (ctypes.c_void_p,
                                                       [ctypes.py_object, ctypes.c_char_p])
_capsule_is = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is.restype, _capsule_is.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def _dlpack_capsule(tensor, device_type):
    # -1 asks a CUDA producer not to synchronise (array API): the caller orders by stream. CPU
    # producers accept None only. Producers older than DLPack 1.0 know neither keyword.
    stream = {} if device_type == _abi.DEVICE_CPU else {"stream": -1}
    try:
        return tensor.__dlpack__(max_version=(1, 0), copy=False, **stream)
    except TypeError:
        return tensor.__dlpack__(**stream)


def _read_dlpack(tensor):
    device = tuple(int(number) for number in tensor.__dlpack_device__())
    capsule = _dlpack_capsule(tensor, device[0])
    flags = 0
    if _capsule_is(capsule, b"dltensor_versioned"):
        managed = _DLManagedTensorVersioned.from_address(
            _capsule_pointer(capsule, b"dltensor_versioned"))
        flags, view = managed.flags, managed.tensor
        if managed.major != 1:
            raise errors.Unsupported(f"a DLPack tensor of version {managed.major} was offered: "
                                     "version 1 and the older form are understood")
    else:
        view = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(view.shape[:view.ndim])
    strides = tuple(view.strides[:view.ndim]) if view.strides else dense_strides(shape)
    dtype = (view.code, view.bits) if view.lanes == 1 else (view.code, view.bits, view.lanes)
    # The capsule is not consumed: its own destructor returns the tensor to the producer.
    return ((view.data or 0) + view.byte_offset, ("dlpack", dtype, shape, strides, device, flags),
            capsule)


def _read_cuda_array(array):
    facts = array.__cuda_array_interface__
    address, read_only = facts["data"]
    strides = facts.get("strides")
    return (address, ("cuda", facts["typestr"], tuple(facts["shape"]),
                      None if strides is None else tuple(strides), read_only), facts)


class _Buffer(ctypes.Structure):
    """Py_buffer of the C API, released when the owner goes."""

    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)), ("internal", ctypes.c_void_p)]

    def __del__(self):
        if self.obj:
            ctypes.pythonapi.PyBuffer_Release(ctypes.byref(self))


_PYBUF_FORMAT_AND_STRIDES = 0x4 | 0x18  # PyBUF_FORMAT | PyBUF_STRIDES: read access is enough


def _read_buffer(holder):
    view = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(holder), ctypes.byref(view),
                                        _PYBUF_FORMAT_AND_STRIDES)
    shape, strides = tuple(view.shape[:view.ndim]), tuple(view.strides[:view.ndim])
    return (view.buf or 0, ("buffer", view.format, view.itemsize, shape, strides,
                            bool(view.readonly)), view)


# ---- keys to layouts, once per new shape ----

def _byte_strides(strides, shape, itemsize, name):
    """Strides in elements from strides in bytes."""
    if strides is None:
        return dense_strides(shape)
    for extent, stride in zip(shape, strides):
        if extent > 1 and stride % itemsize:
            raise errors.InvalidArgument(
                f"{name} has a stride of {stride} bytes: a multiple of its element size {itemsize} "
                "is needed", name, stride)
    return tuple(stride // itemsize for stride in strides)


def _describe_torch(key, name):
    dtype, shape, strides, device = key
    kinds = {"cpu": _abi.DEVICE_CPU, "cuda": _abi.DEVICE_CUDA}
    if device.type not in kinds:
        raise errors.Unsupported(
            f"{name} lies on device {str(device)!r}: cpu and cuda are supported", name, str(device))
    index = device.index if device.type == "cuda" and device.index is not None else 0
    return Layout(name, str(dtype).rpartition(".")[2], shape, strides, (kinds[device.type], index))


def _describe_numpy(key, name):
    dtype, shape, strides, writable = key
    if not dtype.isnative:
        raise errors.InvalidArgument(
            f"{name} has foreign byte order {dtype.str}: native byte order is needed", name,
            dtype.str)
    return Layout(name, dtype.name, shape, _byte_strides(strides, shape, dtype.itemsize, name),
                  writable=writable)


def _describe_dlpack(key, name):
    _, dtype, shape, strides, device, flags = key
    # Pinned host memory (3) is read by the CPU, managed memory (13) by the GPU.
    device = {1: (1, 0), 3: (1, 0), 2: device, 13: (2, device[1])}.get(device[0])
    if device is None:
        raise errors.Unsupported(
            f"{name} lies on DLPack device {key[4]}: CPU and CUDA are supported", name, key[4])
    if flags & _DLPACK_COPIED:
        raise errors.Unsupported(
            f"{name} is exported as a copy: Deuce reads tensors in place", name)
    text = _DLPACK_DTYPES.get(dtype, f"DLPack code {dtype[0]} of {dtype[1]} bits")
    return Layout(name, text, shape, strides, device, not flags & _DLPACK_READ_ONLY)


_TYPESTR_DTYPES = {"<f4": "float32", "<f2": "float16", "<i4": "int32", "<u4": "uint32",
                   "<u2": "uint16", "|u1": "uint8"}


def _describe_cuda_array(key, name):
    _, typestr, shape, strides, read_only = key
    strides = _byte_strides(strides, shape, int(typestr[2:]), name)
    return Layout(name, _TYPESTR_DTYPES.get(typestr, typestr), shape, strides,
                  (_abi.DEVICE_CUDA, -1), not read_only)


_FORMAT_DTYPES = {("f", 4): "float32", ("e", 2): "float16", ("i", 4): "int32", ("l", 4): "int32",
                  ("I", 4): "uint32", ("L", 4): "uint32", ("H", 2): "uint16", ("B", 1): "uint8"}


def _describe_buffer(key, name):
    _, text, itemsize, shape, strides, read_only = key
    text = text.decode() if text else "B"
    native = text.lstrip("@=<" if sys.byteorder == "little" else "@=>")
    dtype = _FORMAT_DTYPES.get((native, itemsize), f"buffer format {text!r}")
    return Layout(name, dtype, shape, _byte_strides(strides, shape, itemsize, name),
                  writable=not read_only)


_DESCRIBERS = {_read_torch: _describe_torch, _read_numpy: _describe_numpy,
               _read_numpy_struct: _describe_numpy, _read_dlpack: _describe_dlpack,
               _read_cuda_array: _describe_cuda_array, _read_buffer: _describe_buffer}

# type -> reader: a later tensor of the same type costs one look-up.
readers = {}


def reader_of(tensor, name):
    kind = type(tensor)
    if all(hasattr(kind, attribute) for attribute in ("data_ptr", "stride", "dtype", "device")):
        reader = _read_torch
    elif any(base.__module__ == "numpy" and base.__name__ == "ndarray" for base in kind.__mro__):
        reader = _numpy_reader(tensor)
    elif hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        reader = _read_dlpack
    elif hasattr(kind, "__cuda_array_interface__"):
        reader = _read_cuda_array
    else:
        try:
            memoryview(tensor).release()
        except TypeError:
            raise errors.InvalidArgument(
                f"{name} is a {kind.__name__}: a torch tensor, a NumPy array, or an object with "
                "__dlpack__, __cuda_array_interface__ or the buffer protocol is needed",
                name) from None
        reader = _read_buffer
    readers[kind] = reader
    return reader


def read(tensor, name):
    """(address, key, owner) of a tensor; name is the argument to blame."""
    reader = readers.get(type(tensor)) or reader_of(tensor, name)
    return reader(tensor)


def describe(tensor, key, name):
    """The Layout behind a key that read() returned for this tensor."""
    return _DESCRIBERS[readers[type(tensor)]](key, name)


def device_of(name, tensor):
    """(DLPack device type, device index) of a tensor."""
    _, key, _ = read(tensor, name)
    return describe(tensor, key, name).device


def kind_of(tensor):
    """"torch", "numpy", "dlpack", "cuda_array" or "buffer", of a tensor that read() has seen."""
    return _DESCRIBERS[readers[type(tensor)]].__name__[len("_describe_"):]
