# SPDX-License-Identifier: Apache-2.0
"""The package without NumPy and without any framework: memoryviews in, memoryviews out."""
import array
import math
import subprocess
import sys
import unittest

import deuce
import support

SHAPES = {"q": (1, 1, 2, 8), "k": (1, 3, 1, 8), "v": (1, 3, 1, 8)}


def view(numbers, form, shape):
    return memoryview(array.array(form, numbers)).cast("B").cast(form, shape)


def problem():
    return {name: view([math.sin(3 * i + seed) for i in range(math.prod(shape))], "f", shape)
            for seed, (name, shape) in enumerate(SHAPES.items())}


def by_definition(q, k, v, length):
    out = []
    for h in range(2):
        scores = [sum(q[0, 0, h, d] * k[0, j, 0, d] for d in range(8)) / math.sqrt(8)
                  for j in range(length)]
        weights = [math.exp(score) for score in scores]
        out.append([sum(w * v[0, j, 0, d] for j, w in enumerate(weights)) / sum(weights)
                    for d in range(8)])
    return out


class PlainPython(support.Case):

    def test_memoryviews_in_a_memoryview_out(self):
        tensors = problem()
        for backend in support.HOST_BACKENDS:
            out = deuce.flash_attn_with_kvcache(*tensors.values(), backend=backend,
                                                cache_seqlens=array.array("i", [2]))
            self.assertEqual((out.shape, out.format), ((1, 1, 2, 8), "f"))
            for h, row in enumerate(by_definition(*tensors.values(), 2)):
                for d, number in enumerate(row):
                    self.assertAlmostEqual(out[0, 0, h, d], number, places=5)

    def test_sixteen_bit_floats_are_integers_here(self):
        ones = view([0x3F80] * 16, "H", SHAPES["q"])  # 1.0 in bfloat16
        keys = view([0x3F80] * 24, "H", SHAPES["k"])
        out = deuce.flash_attn_with_kvcache(ones, keys, keys, q_dtype="bfloat16",
                                            kv_dtype="bfloat16", backend="reference")
        self.assertEqual((out.format, out[0, 0, 1, 7]), ("H", 0x3F80))

    def test_an_output_that_a_memoryview_cannot_hold_has_to_be_passed(self):
        tensors = problem()
        q = view([0] * 16, "H", SHAPES["q"])
        keywords = dict(q_dtype="float16", backend="reference")
        out = deuce.flash_attn_with_kvcache(q, tensors["k"], tensors["v"], **keywords)
        self.assertEqual(out.format, "H")

    def test_lists_are_not_tensors(self):
        tensors = problem()
        sentence = self.assertRefused(
            deuce.InvalidArgument, "cache_seqlens", deuce.flash_attn_with_kvcache,
            *tensors.values(), cache_seqlens=[2])
        self.assertIn("is a list", sentence)

    def test_importing_deuce_imports_no_framework(self):
        code = ("import sys, deuce; deuce.shapes; bad = {'numpy', 'torch', 'ml_dtypes', 'cupy'} & "
                "set(sys.modules); sys.exit(f'imported {bad}' if bad else 0)")
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_python_m_deuce_prints_versions_backends_and_shapes(self):
        output = subprocess.run([sys.executable, "-m", "deuce"], check=True, capture_output=True,
                                text=True).stdout
        for words in (deuce.__version__, "backends", "shapes", "reference", "libdeuce", "hopper"):
            self.assertIn(words, output)


if __name__ == "__main__":
    unittest.main()
