# SPDX-License-Identifier: Apache-2.0
"""How each library decodes on a GPU: every way has its own best layout, made before the clock starts.

A way's prepare(tensors) returns a function of the copy to read; what it returns is the output
(batch, q_len, q heads, d). All ways of a library are timed and the best one is reported. A library
that is not installed, or that refuses a shape, is reported with its own words.
"""
import math

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import deuce
from gpu_cases import PAGE
from peer_common import Way


def _bf16(case):
    return case.kv_dtype == "bfloat16"


def _ones(tensors):
    """Descales of an fp8 cache: one for each request and KV head."""
    case = tensors.case
    if _bf16(case):
        return None
    return torch.ones(len(case.lengths), case.kv_heads, device=tensors.device)


def _deuce(tensors, caches, **keywords):
    out = torch.empty_like(tensors.q)
    lse = torch.empty(tensors.q.shape[0], tensors.q.shape[2], tensors.q.shape[1],
                      device=tensors.device)
    scale = _ones(tensors)

    def run(copy):
        deuce.flash_attn_with_kvcache(
            tensors.q, *caches[copy], cache_seqlens=tensors.kv_len, causal=True, out=out,
            softmax_lse=lse, k_descale=scale, v_descale=scale, **keywords)
        return out
    return run


def _deuce_pages(tensors):
    return _deuce(tensors, tensors.pools, block_table=tensors.table, max_seqlen_k=tensors.longest)


def _deuce_rows(tensors):
    return _deuce(tensors, tensors.rows, kv_layout="HND")


def _sdpa(backend):
    def prepare(tensors):
        case, rows = tensors.case, tensors.rows
        # Query heads of a group as rows of their KV head: these kernels then read K and V once.
        q = tensors.q.reshape(len(case.lengths), case.kv_heads, -1, case.head_dim)

        def run(copy):
            with sdpa_kernel(backend):
                return scaled_dot_product_attention(q, *rows[copy]).reshape(tensors.q.shape)
        return run
    return prepare


def _sdpa_applies(case):
    return case.uniform and case.q_len == 1 and _bf16(case)


def _fa3(tensors):
    from fa3_fwd_interface import flash_attn_with_kvcache
    rows = [tuple(cache.transpose(1, 2) for cache in pair) for pair in tensors.rows]
    scale = _ones(tensors)
    q = tensors.q if scale is None else tensors.q.to(torch.float8_e4m3fn)
    return lambda copy: flash_attn_with_kvcache(
        q, *rows[copy], cache_seqlens=tensors.kv_len, causal=tensors.case.q_len > 1,
        q_descale=scale, k_descale=scale, v_descale=scale, num_splits=0)


def _xqa(tensors):
    import flashinfer
    case = tensors.case
    workspace = torch.zeros(512 << 20, dtype=torch.uint8, device=tensors.device)
    q, out = tensors.q[:, 0], torch.empty_like(tensors.q[:, 0])

    def run(copy):
        flashinfer.decode.trtllm_batch_decode_with_kv_cache(
            q, tensors.pools[copy], workspace, tensors.table, tensors.kv_len, tensors.longest,
            bmm1_scale=1 / math.sqrt(case.head_dim), bmm2_scale=1.0, kv_layout="NHD",
            backend="xqa", out=out)
        return out[:, None]
    return run


WAYS = [
    Way("deuce", "deuce contiguous", _deuce_rows),
    Way("deuce pages", f"deuce pages of {PAGE}", _deuce_pages),
    Way("torch", "torch SDPA cuDNN", _sdpa(SDPBackend.CUDNN_ATTENTION), _sdpa_applies),
    Way("torch", "torch SDPA flash", _sdpa(SDPBackend.FLASH_ATTENTION), _sdpa_applies),
    Way("fa3", "FA3 contiguous", _fa3),
    Way("flashinfer", "FlashInfer XQA", _xqa, lambda case: case.q_len == 1),
]
