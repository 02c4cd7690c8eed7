# SPDX-License-Identifier: Apache-2.0
"""The attention of the example, twice: plain NumPy and Deuce.

Used by generate.py and capture.py as the `attention` of Model.step. Both see the same cache and the
same q (rounded to the cache's type), so their results differ by rounding alone.
"""

import time

import numpy as np


class NumpyAttention:
    """Causal grouped-query attention, one request and KV head at a time, in float32."""

    name = backend = "numpy"

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
    pages.

    backend: a name of `deuce.backends()`, or "auto". ValueError with Deuce's own sentence when it
    does not serve a model of this `config`. `facts`: what deuce.explain() says about the plan.
    """

    name = "deuce"
    _DTYPES = {"bf16": "bfloat16", "f32": "float32"}

    def __init__(self, config, backend="auto"):
        import deuce   # here, so that the example runs with --attention numpy alone
        try:
            self.facts = deuce.explain(
                backend=backend, num_q_heads=config.q_heads, num_kv_heads=config.kv_heads,
                head_dim_qk=config.head_dim, head_dim_v=config.head_dim, q_dtype="bfloat16",
                kv_dtype="bfloat16", out_dtype="float32", max_batch=1, max_q_len=1,
                max_kv_len=config.context)
        except deuce.Error as error:
            raise ValueError(str(error)) from error
        self.backend = self.facts["backend"]
        self._run = deuce.flash_attn_with_kvcache
        self.seconds = 0.0

    def __call__(self, q, cache, layer, batch):
        dtype = self._DTYPES[cache.dtype]
        start = time.perf_counter()
        out = np.empty(q.shape, np.float32)   # the accumulated fp32, not rounded to q's type
        self._run(cache.encode(q), cache.k[layer], cache.v[layer],
                  cache_seqlens=cache.kv_len[batch.requests],
                  block_table=cache.block_table[batch.requests], cu_seqlens_q=batch.cu_q_len,
                  max_seqlen_q=int(np.diff(batch.cu_q_len).max()), causal=True, out=out,
                  q_dtype=dtype, kv_dtype=dtype, backend=self.backend)
        self.seconds += time.perf_counter() - start
        return out
