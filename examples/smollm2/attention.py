# SPDX-License-Identifier: Apache-2.0
"""The attention of the example, twice: plain NumPy and Deuce.

Used by generate.py and capture.py as the `attention` of Model.step. Both see the same cache and the
same q (rounded to the cache's type), so their results differ by rounding alone.
"""

import time

import numpy as np


class NumpyAttention:
    """Causal grouped-query attention, one request and KV head at a time, in float32."""

    name = "numpy"

    def __init__(self):
        self.seconds = 0.0

    def __call__(self, q, cache, layer, batch):
        start = time.perf_counter()
        q = cache.decode(cache.encode(q))
        out = np.empty_like(q)
        for index, request in enumerate(batch.requests):
            rows = slice(batch.cu_q_len[index], batch.cu_q_len[index + 1])
            out[rows] = self._one_request(q[rows], *cache.read(layer, request))
        self.seconds += time.perf_counter() - start
        return out

    @staticmethod
    def _one_request(q, k, v):
        q_len, q_heads, head_dim = q.shape
        kv_len, kv_heads, _ = k.shape
        group = q_heads // kv_heads
        hidden = np.arange(kv_len) > np.arange(kv_len - q_len, kv_len)[:, None]   # [row, key]
        out = np.empty_like(q)
        for head in range(kv_heads):
            heads = slice(head * group, (head + 1) * group)
            scores = q[:, heads].reshape(-1, head_dim) @ k[:, head].T
            scores = scores.reshape(q_len, group, kv_len) * np.float32(head_dim ** -0.5)
            np.putmask(scores, np.broadcast_to(hidden[:, None], scores.shape), -np.inf)
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            total = scores.sum(axis=-1, keepdims=True)
            out[:, heads] = (scores.reshape(-1, kv_len) @ v[:, head]).reshape(
                q_len, group, head_dim) / total
        return out


class DeuceAttention:
    """The same through Deuce: one call a layer for all requests, K and V read in place in their
    pages. backend: a name of `deuce.backends()`, or "auto"."""

    _DTYPES = {"bf16": "bfloat16", "f32": "float32"}

    def __init__(self, backend="auto"):
        import deuce   # here, so that the example runs with --attention numpy alone
        self._run, self._explain = deuce.flash_attn_with_kvcache, deuce.explain
        self.backend, self.name = backend, "deuce"
        self.seconds = 0.0

    def _arguments(self, q, cache, layer, batch, out):
        dtype = self._DTYPES[cache.dtype]
        return dict(
            q=cache.encode(q), k_cache=cache.k[layer], v_cache=cache.v[layer],
            cache_seqlens=cache.kv_len[batch.requests], block_table=cache.block_table[batch.requests],
            cu_seqlens_q=batch.cu_q_len, max_seqlen_q=int(np.diff(batch.cu_q_len).max()),
            causal=True, out=out, q_dtype=dtype, kv_dtype=dtype, backend=self.backend)

    def __call__(self, q, cache, layer, batch):
        start = time.perf_counter()
        out = np.empty(q.shape, np.float32)   # no rounding of the output: fp32 as accumulated
        self._run(**self._arguments(q, cache, layer, batch, out))
        self.seconds += time.perf_counter() - start
        return out

    def explain(self, q, cache, layer, batch):
        """What Deuce says about this call, as a dict; computes nothing."""
        return self._explain(self._run,
                             **self._arguments(q, cache, layer, batch, np.empty(q.shape, np.float32)))
