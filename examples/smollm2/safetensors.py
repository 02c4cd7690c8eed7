# SPDX-License-Identifier: Apache-2.0
"""Writes and reads safetensors files: the few dtypes that a capture holds.

Used by capture.py (writes) and the tests (read). NumPy has no bfloat16, so an array of
uint16 means its bits. Format: 8 bytes of header length (little endian), a JSON header with dtype,
shape and byte range of each tensor, then the tensors back to back.
"""

import json
import pathlib

import numpy as np

_DTYPES = {"F32": np.dtype("<f4"), "BF16": np.dtype("<u2"), "I32": np.dtype("<i4")}
_ALIGNMENT = 8   # the header is padded with spaces so that the tensors start aligned


def _dtype_name(array):
    for name, dtype in _DTYPES.items():
        if array.dtype == dtype:
            return name
    raise ValueError(f"dtype {array.dtype} is not one that a capture holds")


def save(path, tensors, metadata):
    """tensors: dict name -> array (float32, int32, or uint16 for bfloat16); metadata: dict of
    strings. Equal input gives equal bytes. Returns the size of the file.
    """
    header, position = {"__metadata__": metadata}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": _dtype_name(array), "shape": list(array.shape),
                        "data_offsets": [position, position + array.nbytes]}
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
    return 8 + len(text) + position


def load(path):
    """(tensors, metadata) of a file that save() or `deuce run` wrote; it is trusted."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = (start + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[first:last], _DTYPES[entry["dtype"]]).reshape(
            entry["shape"])
    return tensors, metadata
