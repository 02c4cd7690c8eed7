# SPDX-License-Identifier: Apache-2.0
"""Paged cache, safetensors files and texts of the SmolLM2 example: what needs no model file."""

import pathlib
import tempfile
import types
import unittest

import numpy as np

from examples.smollm2 import safetensors, text
from examples.smollm2.paged_cache import PagedKvCache, from_bf16, to_bf16

SHAPE = types.SimpleNamespace(layers=2, kv_heads=3, head_dim=4)


class BFloat16(unittest.TestCase):
    def test_values_round_to_nearest_even(self):
        # 1 + 2^-8 lies halfway between two neighbours: the even one is 1. 1 + 3 * 2^-8 goes up.
        values = np.float32([1, 1 + 2 ** -8, 1 + 2 ** -8 + 2 ** -20, 1 + 3 * 2 ** -8, -2.5, 0])
        rounded = [1, 1, 1 + 2 ** -7, 1 + 2 ** -6, -2.5, 0]
        np.testing.assert_array_equal(from_bf16(to_bf16(values)), np.float32(rounded))

    def test_every_finite_pattern_survives(self):
        bits = np.arange(65536, dtype=np.uint16)
        bits = bits[np.isfinite(from_bf16(bits))]
        np.testing.assert_array_equal(to_bf16(from_bf16(bits)), bits)


class Cache(unittest.TestCase):
    def test_tokens_written_in_pieces_are_read_in_order(self):
        cache = PagedKvCache(SHAPE, batch=2, max_tokens=11, page_size=4, dtype="f32")
        written, chance = ([], []), np.random.default_rng(1)
        for request, count in ((0, 3), (1, 5), (0, 1), (0, 7), (1, 1)):
            k = chance.normal(size=(count, 3, 4)).astype(np.float32)
            cache.write(1, cache.extend(request, count), k, -k)
            written[request].append(k)
        for request in range(2):
            k, v = cache.read(1, request)
            np.testing.assert_array_equal(k, np.concatenate(written[request]))
            np.testing.assert_array_equal(v, -k)
        self.assertTrue(np.isnan(cache.k[0]).all(), "another layer was written")

    def test_no_page_belongs_to_two_requests(self):
        cache = PagedKvCache(SHAPE, batch=5, max_tokens=40, page_size=8)
        for request in range(5):
            cache.extend(request, 3 + 8 * request)
        owned = cache.block_table[cache.block_table >= 0]
        self.assertEqual(len(owned), len(set(owned.tolist())))

    def test_more_tokens_than_room_are_refused_and_nothing_changes(self):
        cache = PagedKvCache(SHAPE, batch=1, max_tokens=8, page_size=4)
        cache.extend(0, 7)
        with self.assertRaisesRegex(ValueError, "request 0 would hold 9 tokens"):
            cache.extend(0, 2)
        self.assertEqual(cache.kv_len[0], 7)

    def test_unknown_dtypes_are_refused(self):
        with self.assertRaisesRegex(ValueError, "dtype is f16"):
            PagedKvCache(SHAPE, 1, 8, dtype="f16")


class Files(unittest.TestCase):
    def test_safetensors_keep_names_shapes_bits_and_metadata(self):
        tensors = {"q": np.float32([[1, np.nan]]), "k": np.uint16([[0x7FC0], [1]]),
                   "kv_len": np.int32([3, -1])}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "t.safetensors"
            size = safetensors.save(path, tensors, {"causal": "true"})
            self.assertEqual(size, path.stat().st_size)
            loaded, metadata = safetensors.load(path)
        self.assertEqual(metadata, {"causal": "true"})
        self.assertEqual(list(loaded), list(tensors))
        for name, array in tensors.items():
            np.testing.assert_array_equal(loaded[name], array)
            self.assertEqual(loaded[name].dtype, array.dtype)

    def test_other_dtypes_are_refused(self):
        with self.assertRaisesRegex(ValueError, "float64"):
            safetensors.save("never", {"q": np.zeros(1)}, {})

    def test_passages_are_cut_at_their_headings(self):
        passages = text.passages()
        self.assertTrue(passages["Preamble"].startswith("We the People of the United States"))
        self.assertEqual(passages["Amendment VIII"], "Excessive bail shall not be required, nor "
                         "excessive fines imposed, nor cruel and unusual punishments inflicted.")
        self.assertEqual(sum(heading.startswith("Amendment") for heading in passages), 27)


if __name__ == "__main__":
    unittest.main()
