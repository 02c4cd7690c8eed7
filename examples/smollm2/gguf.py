# SPDX-License-Identifier: Apache-2.0
"""Reads a GGUF file (version 2 and 3): its metadata and its tensors as float32 arrays.

Used by model.py and tokenizer.py. The file is mapped, not read; every count, length and offset of
the header is checked against the file's size before it is used, so that a truncated or lying file
gives a GgufError with a sentence, never a crash or a huge allocation.

Format: the GGUF specification of the ggml project (little endian; strings are a 64-bit length and
UTF-8 bytes; tensor data start at the next multiple of `general.alignment`, 32 by default).
"""

import math
import mmap
import struct

import numpy as np


class GgufError(ValueError):
    """The file is not a GGUF file that this reader can trust; the text says why."""


# Metadata value types: number in the file -> struct format. 8 is a string, 9 an array.
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
            12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_DIMENSIONS = 4


def _from_f32(raw):
    return raw.view(np.float32).copy()


def _from_f16(raw):
    return raw.view(np.float16).astype(np.float32)


def _from_q8_0(raw):
    """Blocks of 34 bytes: fp16 scale, 32 signed bytes. value = scale * byte."""
    blocks = raw.reshape(-1, 34)
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    return (blocks[:, 2:].view(np.int8) * scale).reshape(-1)


def _from_q4_1(raw):
    """Blocks of 20 bytes: fp16 scale, fp16 minimum, 16 bytes that hold values 0..15 in their low
    halves and values 16..31 in their high halves. value = minimum + scale * nibble."""
    blocks = raw.reshape(-1, 20)
    scale, minimum = (blocks[:, i:i + 2].copy().view(np.float16).astype(np.float32) for i in (0, 2))
    nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], axis=1)
    return (nibbles * scale + minimum).reshape(-1)


# Tensor types: number in the file -> (name, values in a block, bytes of a block, decoder).
_TENSOR_TYPES = {
    0: ("F32", 1, 4, _from_f32),
    1: ("F16", 1, 2, _from_f16),
    3: ("Q4_1", 32, 20, _from_q4_1),
    8: ("Q8_0", 32, 34, _from_q8_0),
}


class _Cursor:
    """Walks over the header; refuses to step beyond the end of the file."""

    def __init__(self, data):
        self.data, self.position = data, 0

    def take(self, byte_count, what):
        left = len(self.data) - self.position
        if byte_count > left:
            raise GgufError(f"{what} needs {byte_count} bytes, the file has {left} left")
        self.position += byte_count
        return self.data[self.position - byte_count:self.position]

    def number(self, code, what):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]

    def string(self, what):
        text = self.take(self.number("Q", what), what)
        try:
            return bytes(text).decode("utf-8")
        except UnicodeDecodeError as error:
            raise GgufError(f"{what} is not UTF-8") from error

    def value(self, kind, what):
        if kind == _STRING:
            return self.string(what)
        if kind in _SCALARS:
            return self.number(_SCALARS[kind], what)
        if kind != _ARRAY:
            raise GgufError(f"{what} has value type {kind}, which GGUF does not define")
        return self.array(what)

    def array(self, what):
        kind, count = self.number("I", what), self.number("Q", what)
        if kind in _SCALARS:
            size = struct.calcsize("<" + _SCALARS[kind])
            return list(struct.unpack(f"<{count}{_SCALARS[kind]}", self.take(count * size, what)))
        if kind != _STRING:
            raise GgufError(f"{what} is an array of value type {kind}; "
                            "scalars and strings are read")
        if count > (len(self.data) - self.position) // 8:   # a string takes 8 bytes or more
            raise GgufError(f"{what} claims {count} strings, more than the file can hold")
        return [self.string(what) for _ in range(count)]


class GgufFile:
    """`metadata`: dict of the file's keys. `tensor(name)`: float32 array, rows first."""

    def __init__(self, path):
        with open(path, "rb") as file:
            if file.seek(0, 2) == 0:
                raise GgufError(f"{path} is empty")
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        cursor = _Cursor(self._data)
        if cursor.take(4, "the magic") != b"GGUF":
            raise GgufError(f"{path} does not start with the bytes GGUF")
        version = cursor.number("I", "the version")
        if version not in (2, 3):
            raise GgufError(f"GGUF version is {version}; versions 2 and 3 are read")
        tensor_count, key_count = (cursor.number("Q", "a header count") for _ in range(2))
        self.metadata = {}
        for _ in range(key_count):
            key = cursor.string("a metadata key")
            self.metadata[key] = cursor.value(cursor.number("I", key), key)
        entries = [self._read_entry(cursor) for _ in range(tensor_count)]
        alignment = self.metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise GgufError(f"general.alignment is {alignment!r}; a positive integer is needed")
        data_start = -(-cursor.position // alignment) * alignment
        self._tensors = dict(self._place(entry, data_start) for entry in entries)

    @staticmethod
    def _read_entry(cursor):
        name = cursor.string("a tensor name")
        rank = cursor.number("I", name)
        if not 1 <= rank <= _MAX_DIMENSIONS:
            raise GgufError(f"tensor {name} has {rank} dimensions; "
                            f"1 to {_MAX_DIMENSIONS} are legal")
        dimensions = [cursor.number("Q", name) for _ in range(rank)]
        return name, dimensions, cursor.number("I", name), cursor.number("Q", name)

    def _place(self, entry, data_start):
        name, dimensions, kind, offset = entry
        if kind not in _TENSOR_TYPES:
            known = ", ".join(t[0] for t in _TENSOR_TYPES.values())
            raise GgufError(f"tensor {name} has type {kind}; this reader decodes {known}")
        type_name, block_values, block_bytes, decode = _TENSOR_TYPES[kind]
        if dimensions[0] % block_values:
            raise GgufError(f"tensor {name} has rows of {dimensions[0]} values, not a multiple of "
                            f"the {type_name} block of {block_values}")
        size = math.prod(dimensions) // block_values * block_bytes
        if data_start + offset + size > len(self._data):
            raise GgufError(f"tensor {name} ends at byte {data_start + offset + size}, "
                            f"beyond the file's {len(self._data)}")
        # The file names the innermost dimension first; NumPy names it last.
        return name, (type_name, tuple(reversed(dimensions)), data_start + offset, size, decode)

    def tensor_types(self):
        """Counts of tensors by type name, for display."""
        counts = {}
        for type_name, *_ in self._tensors.values():
            counts[type_name] = counts.get(type_name, 0) + 1
        return counts

    def tensor(self, name):
        """Decodes one tensor: float32, C order. Raises GgufError when there is none of the name."""
        if name not in self._tensors:
            raise GgufError(f"the file has no tensor {name}")
        _, shape, start, size, decode = self._tensors[name]
        raw = np.frombuffer(self._data, np.uint8, count=size, offset=start)
        return decode(raw).reshape(shape)

    def require(self, key, kind):
        """A metadata value of the Python type `kind`; GgufError names a key that is not there."""
        value = self.metadata.get(key)
        if not isinstance(value, kind):
            found = "missing" if value is None else f"{value!r:.40}, not of type {kind.__name__}"
            raise GgufError(f"metadata key {key} is {found}")
        return value
