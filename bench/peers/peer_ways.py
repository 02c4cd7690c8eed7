# SPDX-License-Identifier: Apache-2.0
"""How each library does the work: every way has its own best layout, made before the clock starts.

A way's prepare(tensors) returns a function of the copy to read; what it returns is the output
(batch, q heads, d). All ways of a library are timed and the best one is reported.
"""
import math

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

import deuce
from peer_common import Way


def _uniform(case):
    return len(set(case.lengths)) == 1


def _grouped(case):
    return case.q_heads != case.kv_heads


def _deuce_rows(tensors):
    q, rows = tensors.q[:, None], tensors.rows
    return lambda copy: deuce.flash_attn_with_kvcache(
        q, *rows[copy], cache_seqlens=tensors.kv_len)[:, 0]


def _deuce_pages(tensors):
    q, (pools, table) = tensors.q[:, None], tensors.pages
    return lambda copy: deuce.flash_attn_with_kvcache(
        q, *pools[copy], cache_seqlens=tensors.kv_len, block_table=table)[:, 0]


def _torch_gqa(tensors):
    q, heads = tensors.q[:, :, None], tensors.heads
    gqa = _grouped(tensors.case)
    return lambda copy: scaled_dot_product_attention(q, *heads[copy], enable_gqa=gqa)[:, :, 0]


def _torch_group_rows(tensors):
    """The query heads of a group as query rows of their KV head: GQA without a copy."""
    case, heads = tensors.case, tensors.heads
    q = tensors.q.reshape(len(case.lengths), case.kv_heads, -1, case.head_dim)
    return lambda copy: scaled_dot_product_attention(q, *heads[copy]).flatten(1, 2)


def _torch_expanded(tensors):
    q, expanded = tensors.q[:, :, None], tensors.expanded
    return lambda copy: scaled_dot_product_attention(q, *expanded[copy])[:, :, 0]


def _torch_masked(tensors):
    """Padded to the longest, with a mask: the whole batch in one call."""
    case, heads = tensors.case, tensors.heads
    q = tensors.q.reshape(len(case.lengths), case.kv_heads, -1, case.head_dim)
    mask = (torch.arange(tensors.longest)[None] < tensors.kv_len[:, None])[:, None, None]
    return lambda copy: scaled_dot_product_attention(q, *heads[copy], attn_mask=mask).flatten(1, 2)


def _torch_loop(tensors):
    """One call per request on views of its live keys: no padding is read."""
    case, heads = tensors.case, tensors.heads
    q = tensors.q.reshape(len(case.lengths), case.kv_heads, -1, case.head_dim)

    def run(copy):
        k, v = heads[copy]
        outputs = [scaled_dot_product_attention(q[b:b + 1], k[b:b + 1, :, :n], v[b:b + 1, :, :n])
                   for b, n in enumerate(case.lengths)]
        return torch.cat(outputs).flatten(1, 2)
    return run


def _numpy(tensors):
    """fp32 copies of the cache: twice the bytes of bf16, which NumPy cannot multiply."""
    case, rows = tensors.case, tensors.float_rows
    q = tensors.q.float().numpy().reshape(len(case.lengths), case.kv_heads, -1, case.head_dim)
    q = q / math.sqrt(case.head_dim)

    def run(copy):
        out = np.empty_like(q)
        for b, (k, v) in enumerate(rows[copy]):
            scores = q[b] @ k.transpose(0, 2, 1)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            out[b] = (weights / weights.sum(-1, keepdims=True)) @ v
        return torch.from_numpy(out.reshape(len(case.lengths), case.q_heads, case.head_dim))
    return run


def expected(tensors):
    """The judge: NumPy in fp32 on copy 0."""
    return _numpy(tensors)(0).numpy()


WAYS = [
    Way("deuce", "deuce", _deuce_rows),
    Way("deuce pages", "deuce, pages of 16", _deuce_pages),
    Way("torch", "torch enable_gqa", _torch_gqa, lambda case: _uniform(case)),
    Way("torch", "torch group as rows", _torch_group_rows,
        lambda case: _uniform(case) and _grouped(case)),
    Way("torch", "torch expanded K, V", _torch_expanded,
        lambda case: _uniform(case) and _grouped(case)),
    Way("torch", "torch padded and masked", _torch_masked, lambda case: not _uniform(case)),
    Way("torch", "torch loop over requests", _torch_loop, lambda case: len(case.lengths) > 1),
    Way("numpy", "numpy fp32", _numpy),
]
