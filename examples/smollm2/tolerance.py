# SPDX-License-Identifier: Apache-2.0
"""How far an attention may lie from the exact result: src/reference/tolerance.h in NumPy, for what
the example computes (causal, no sink, no softcap, fp32 output).

Used by check.py. The derivation is in docs/numerics.md; tests/examples holds this mirror and the
C++ header to the same numbers.
"""

import numpy as np

_U = 2.0 ** -24          # half an ulp of fp32
_EXP2_ERROR = 2.0 ** -21


def precision_of(backend):
    """Relative rounding of the probabilities: `cpu` and `reference` keep them in fp32, a GPU kernel
    feeds them to its matrix unit in bf16."""
    return 0.0 if backend in ("cpu", "reference", "numpy") else 2.0 ** -8


def request_bound(q, k, v, p_roundoff=0.0):
    """Bound of |out - exact| for one request; float64, shaped as out [row, q_head, head_dim].

    q [row, q_head, head_dim], k and v [key, kv_head, head_dim], as the attention reads them; row i
    sees keys 0 .. keys - rows + i.
    """
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    rows, q_heads, head_dim = q.shape
    keys, kv_heads, _ = k.shape
    limits = np.empty_like(q)
    for row in range(rows):
        seen = keys - rows + row + 1
        for head in range(q_heads):
            kv_head = head // (q_heads // kv_heads)
            limits[row, head] = _row_bound(q[row, head], k[:seen, kv_head], v[:seen, kv_head],
                                           p_roundoff)
    return limits


def _row_bound(q, k, v, p_roundoff):
    keys, head_dim = k.shape
    scale = head_dim ** -0.5
    scores = k @ q * scale
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    out = weights @ v
    delta = (np.sqrt(head_dim) + 8) * _U * scale * (np.abs(k) @ np.abs(q)).max() + _EXP2_ERROR
    magnitude = weights @ np.abs(v)
    limit = np.expm1(2 * delta) * (weights @ np.abs(v - out))
    limit += p_roundoff * np.minimum(magnitude,
                                     np.abs(out) + 4 * np.sqrt(weights ** 2 @ v ** 2))
    limit += 2 * (128 + keys / 64) * _U * magnitude + 8 * _U * np.abs(out)
    return limit + np.maximum((np.abs(out) + limit) * _U, 2.0 ** -150)   # rounding to fp32


def bound(q, cache, layer, batch, p_roundoff=0.0):
    """request_bound() of every request of a step, in the order of q's tokens."""
    q = cache.decode(cache.encode(q))
    return np.concatenate([
        request_bound(q[first:last], *cache.read(layer, request), p_roundoff)
        for request, first, last in zip(batch.requests, batch.cu_q_len, batch.cu_q_len[1:])])
