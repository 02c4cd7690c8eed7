# SPDX-License-Identifier: Apache-2.0
"""The captures of tests/data through the Python package, on every backend that runs here, against
NumPy in double precision within the tolerance; and the NumPy mirror of that tolerance."""

import itertools
import pathlib
import unittest

import numpy as np

import deuce
from examples.smollm2 import safetensors
from examples.smollm2.paged_cache import from_bf16
from examples.smollm2.tolerance import precision_of, request_bound

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
NAMES = "smollm2_decode", "smollm2_prompt"
HOST_BACKENDS = [name for name, answer in deuce.backends().items()
                 if name in ("cpu", "reference") and answer == "ready"]


class Capture:
    def __init__(self, name):
        self.tensors, self.metadata = safetensors.load(DATA / f"{name}.safetensors")
        self.scale = float(self.metadata["softmax_scale"])
        self.bf16 = self.tensors["q"].dtype == np.uint16
        batch = len(self.tensors["kv_len"])
        self.cu_q_len = self.tensors.get("cu_q_len", np.arange(batch + 1, dtype=np.int32))

    def values(self, name):
        return from_bf16(self.tensors[name]) if self.bf16 else self.tensors[name]

    def requests(self):
        """(rows of q, q, k, v) of each request, gathered from its pages."""
        q, k, v = map(self.values, "qkv")
        page_size = k.shape[1]
        for index, length in enumerate(self.tensors["kv_len"]):
            rows = slice(self.cu_q_len[index], self.cu_q_len[index + 1])
            pages = self.tensors["block_table"][index, :-(-length // page_size)]
            yield rows, q[rows], *(x[pages].reshape(-1, *x.shape[2:])[:length] for x in (k, v))

    def run(self, backend):
        t, dtype = self.tensors, "bfloat16" if self.bf16 else "float32"
        out = np.full(t["q"].shape, np.nan, np.float32)
        return deuce.flash_attn_with_kvcache(
            t["q"], t["k"], t["v"], cache_seqlens=t["kv_len"], block_table=t["block_table"],
            cu_seqlens_q=self.cu_q_len, max_seqlen_q=int(np.diff(self.cu_q_len).max()), out=out,
            softmax_scale=self.scale, return_softmax_lse=True,
            causal=self.metadata["causal"] == "true", q_dtype=dtype, kv_dtype=dtype,
            backend=backend)


def exact(q, k, v, scale):
    """Attention of one request in float64: out [row, head, d] and LSE [head, row]."""
    rows, heads, _ = q.shape
    group, keys = heads // k.shape[1], len(k)
    k, v = (np.repeat(np.float64(x), group, axis=1) for x in (k, v))
    scores = np.einsum("rhd,khd->hrk", np.float64(q), k) * scale
    scores[:, np.arange(keys) > np.arange(keys - rows, keys)[:, None]] = -np.inf
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1)
    return np.einsum("hrk,khd->rhd", weights / total[..., None], v), np.log(total) + top[..., 0]


class Captures(unittest.TestCase):
    def test_every_backend_agrees_with_double_precision(self):
        self.assertIn("reference", HOST_BACKENDS)
        for name, backend in itertools.product(NAMES, HOST_BACKENDS):
            capture = Capture(name)
            out, lse = capture.run(backend)
            for rows, q, k, v in capture.requests():
                with self.subTest(capture=name, backend=backend, keys=len(k)):
                    expected, expected_lse = exact(q, k, v, capture.scale)
                    limit = request_bound(q, k, v, precision_of(backend))
                    share = np.abs(out[rows] - expected) / limit
                    self.assertLessEqual(share.max(), 1)   # a NaN fails this as well
                    np.testing.assert_allclose(lse[:, rows], expected_lse, rtol=0, atol=2e-5)

    def test_captures_hold_nan_in_slots_that_no_request_uses(self):
        for name in NAMES:
            capture = Capture(name)
            used = sum(len(k) for _, _, k, _ in capture.requests())
            k = capture.values("k")
            self.assertEqual(np.isnan(k).all(axis=(2, 3)).sum(), k.shape[0] * k.shape[1] - used)

    def test_the_tolerance_notices_a_missing_key(self):
        capture = Capture("smollm2_decode")
        for _, q, k, v in capture.requests():
            if len(k) == 1:
                continue
            less, _ = exact(q, k[1:], v[1:], capture.scale)
            full, _ = exact(q, k, v, capture.scale)
            self.assertGreater((np.abs(less - full) / request_bound(q, k, v)).max(), 10)


if __name__ == "__main__":
    unittest.main()
