# SPDX-License-Identifier: Apache-2.0
"""GGUF reader of the SmolLM2 example: values against the format's definition, and bad files."""

import pathlib
import random
import struct
import tempfile
import unittest

import numpy as np

from examples.smollm2.gguf import GgufError, GgufFile


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def file_bytes(tensors, keys=b"", key_count=0, version=3, magic=b"GGUF"):
    """A GGUF file: tensors are (name, dimensions innermost first, type, data)."""
    entries, data = b"", b""
    for name, dimensions, kind, content in tensors:
        entries += text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions,
                                            kind, len(data))
        data += content + b"\0" * (-len(content) % 32)
    head = magic + struct.pack("<IQQ", version, len(tensors), key_count) + keys + entries
    return head + b"\0" * (-len(head) % 32) + data


KEYS = (text("general.name") + struct.pack("<I", 8) + text("tiny")
        + text("list") + struct.pack("<IIQ3i", 9, 5, 3, 1, -2, 3)
        + text("words") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"))


def half(value):
    return struct.pack("<e", value)


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "tiny.gguf"

    def open(self, data):
        self.path.write_bytes(data)
        return GgufFile(self.path)

    def refused(self, data, words):
        with self.assertRaises(GgufError) as caught:
            self.open(data)
        self.assertIn(words, str(caught.exception))

    def test_metadata_of_every_kind_is_read(self):
        self.assertEqual(self.open(file_bytes([], KEYS, 3)).metadata,
                         {"general.name": "tiny", "list": [1, -2, 3], "words": ["a", "bc"]})

    def test_f32_and_f16_tensors_have_rows_first(self):
        values = np.arange(6, dtype=np.float32)
        for kind, data in ((0, values.tobytes()), (1, values.astype(np.float16).tobytes())):
            tensor = self.open(file_bytes([("t", [3, 2], kind, data)])).tensor("t")
            np.testing.assert_array_equal(tensor, [[0, 1, 2], [3, 4, 5]])

    def test_q8_0_is_scale_times_byte(self):
        block = half(0.5) + struct.pack("32b", *range(-16, 16))
        tensor = self.open(file_bytes([("t", [32], 8, block)])).tensor("t")
        np.testing.assert_array_equal(tensor, np.arange(-16, 16) * 0.5)

    def test_q4_1_is_minimum_plus_scale_times_nibble_low_halves_first(self):
        blocks = b"".join(half(scale) + half(minimum) + bytes(i | (15 - i) << 4 for i in range(16))
                          for scale, minimum in ((0.25, -1.0), (2.0, 3.0)))
        tensor = self.open(file_bytes([("t", [64], 3, blocks)])).tensor("t")
        ramp = np.concatenate([np.arange(16), 15 - np.arange(16)])
        np.testing.assert_array_equal(tensor, np.concatenate([ramp * 0.25 - 1, ramp * 2 + 3]))

    def test_every_truncation_is_refused_by_a_sentence(self):
        whole = file_bytes([("t", [3, 2], 0, bytes(24))], KEYS, 3)
        whole = whole[:len(whole) - 8]   # without the padding behind the last tensor
        self.open(whole)
        for length in range(len(whole)):
            with self.subTest(length=length), self.assertRaises(GgufError):
                self.open(whole[:length])

    def test_changed_bytes_give_a_file_or_a_sentence_and_nothing_else(self):
        whole, chance = file_bytes([("t", [3, 2], 0, bytes(24))], KEYS, 3), random.Random(3)
        for _ in range(2000):
            data = bytearray(whole)
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            try:
                self.open(data).tensor("t")
            except GgufError as error:
                self.assertTrue(str(error))

    def test_lies_of_the_header_are_named(self):
        good = [("t", [32], 0, bytes(128))]
        self.refused(b"", "empty")
        self.refused(file_bytes(good, magic=b"GGML"), "does not start with the bytes GGUF")
        self.refused(file_bytes(good, version=1), "GGUF version is 1")
        self.refused(file_bytes([("t", [32], 2, bytes(128))]), "tensor t has type 2")
        self.refused(file_bytes([("t", [2 ** 62, 2 ** 62], 0, b"")]), "beyond the file's")
        self.refused(file_bytes([("t", [31], 8, bytes(34))]), "not a multiple of the Q8_0 block")
        self.refused(file_bytes([("t", [1] * 5, 0, bytes(4))]), "5 dimensions")
        huge = text("k") + struct.pack("<IIQ", 9, 8, 2 ** 60)
        self.refused(file_bytes([], huge, 1), "more than the file can hold")
        self.refused(file_bytes([], text("k") + struct.pack("<I", 77), 1), "value type 77")
        alignment = text("general.alignment") + struct.pack("<II", 4, 0)
        self.refused(file_bytes(good, alignment, 1), "general.alignment is 0")

    def test_absent_tensors_and_keys_are_named(self):
        file = self.open(file_bytes([]))
        for call in (lambda: file.tensor("blk.0"), lambda: file.require("blk.0", int)):
            with self.assertRaisesRegex(GgufError, "blk.0"):
                call()


if __name__ == "__main__":
    unittest.main()
