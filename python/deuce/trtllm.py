# SPDX-License-Identifier: Apache-2.0
"""Decode attention in the shape of TensorRT-LLM's kernels as FlashInfer offers them: no plan step.

Used by what runs on Blackwell today. Every parameter of FlashInfer's function exists here with its
meaning; what no backend serves is refused by name. The table of all is in docs/python.md.
"""
from typing import NamedTuple

from . import _abi, _config, _refuse, errors
from ._decode import decode
from ._prepare import Entry, Request, batch_of, expect_rank
from ._tensor import Layout
from .flash_attn import cache_axes


class _Options(NamedTuple):
    """What shapes the plan beside the tensors."""

    max_seq_len: object
    window_left: object
    out_dtype: object
    kv_layout: object
    backend: object
    q_len_per_req: object
    max_q_len: object
    enable_pdl: object
    split_kv_len: object
    score_slots: object
    row_replicas: object
    emulator_seed: object
    q_dtype: object
    kv_dtype: object


def _query(options, q, lengths, cu_q_len):
    expect_rank(q, 3, "(tokens, heads, head dim)")
    expect_rank(lengths, 1, "(batch)")
    if cu_q_len is not None:
        expect_rank(cu_q_len, 1, "(batch + 1)")
        if options.max_q_len is None:
            raise errors.InvalidArgument("max_q_len is required with cum_seq_lens_q", "max_q_len")
        if options.q_len_per_req not in (None, 1):
            raise errors.InvalidArgument(
                f"q_len_per_req is {options.q_len_per_req} and cum_seq_lens_q is given: pass one "
                "of them", "q_len_per_req")
        return batch_of(cu_q_len.shape[0], "cum_seq_lens_q"), _config.integer(options.max_q_len, "max_q_len")
    q_len = 1 if options.q_len_per_req is None else _config.integer(options.q_len_per_req,
                                                                    "q_len_per_req")
    if options.max_q_len not in (None, q_len):
        raise errors.InvalidArgument(
            f"max_q_len is {options.max_q_len} but q_len_per_req is {q_len} and there is no "
            "cum_seq_lens_q", "max_q_len", options.max_q_len)
    batch = lengths.shape[0]
    if q.shape[0] != batch * q_len:
        raise errors.InvalidArgument(
            f"query has {q.shape[0]} tokens: {batch} requests of {q_len} are needed", "query",
            q.shape)
    return batch, q_len


def _spread(layouts, field, batch, kv_heads):
    """Read a one-element scale as (batch, KV heads) with strides 0."""
    layout = layouts[field]
    if layout is None:
        return
    if any(extent != 1 for extent in layout.shape):
        raise errors.InvalidArgument(
            f"{layout.name} has shape {layout.shape}: a number or a tensor of one element is "
            "needed", layout.name, layout.shape)
    layouts[field] = Layout(layout.name, layout.dtype, (batch, kv_heads), (0, 0), layout.device)


def _build(options, layouts):
    q, k, v, table = (layouts[field] for field in ("q", "k", "v", "block_table"))
    batch, q_len = _query(options, q, layouts["kv_len"], layouts["cu_q_len"])
    axes = cache_axes(options.kv_layout)
    for layout in (k, v):
        expect_rank(layout, 4, "(pages, ...) in the order of kv_layout")
    expect_rank(table, 2, "(batch, columns)")
    for field in ("k_descale", "v_descale"):
        _spread(layouts, field, batch, k.shape[axes[2]])
    return Request(
        batch=batch, q_len=q_len, q_form="th", lse_form="th", cache_axes=axes, paged=True,
        out_shape=(*q.shape[:-1], v.shape[-1]), lse_shape=q.shape[:-1],
        capacity=k.shape[axes[1]] * table.shape[1], q_dtype=options.q_dtype,
        kv_dtype=options.kv_dtype,
        out_dtype=options.out_dtype and _config.dtype_name(options.out_dtype, "out_dtype"),
        config=dict(
            _config.backend_fields(options.backend), causal=int(q_len > 1), softmax_scale=1.0,
            window_left=options.window_left, lse_base=2, max_kv_len=options.max_seq_len,
            split_kv_len=options.split_kv_len, score_slots=options.score_slots,
            row_replicas=options.row_replicas, emulator_seed=options.emulator_seed,
            flags=_abi.FLAG_PDL if options.enable_pdl else 0))


_ENTRY = Entry({"q": "query", "k": "kv_cache", "v": "kv_cache", "kv_len": "seq_lens",
                "cu_q_len": "cum_seq_lens_q", "block_table": "block_tables", "sink": "sinks",
                "k_descale": "bmm1_scale", "v_descale": "bmm2_scale"}, _build,
               needs=("q", "k", "v", "kv_len", "block_table"))


def _scale(value, name):
    """(tensor, factor) of a scale that may be a device tensor or a host number."""
    if hasattr(value, "data_ptr") or getattr(value, "shape", ()) != ():
        return value, 1.0
    return None, _config.factor(value, name)


def trtllm_batch_decode_with_kv_cache(
        query, kv_cache, workspace_buffer, block_tables, seq_lens, max_seq_len, bmm1_scale=1.0,
        bmm2_scale=1.0, window_left=-1, out=None, out_dtype=None, o_sf_scale=None,
        o_sf_vec_size=None, sinks=None, kv_layout="HND", enable_pdl=None, backend="auto",
        q_len_per_req=1, o_scale=1.0, mask=None, max_q_len=None, cum_seq_lens_q=None,
        skip_softmax_threshold_scale_factor=None, kv_cache_sf=None, uses_shared_paged_kv_idx=True,
        lse=None, return_lse=False, bmm1_scale_log2=None, multi_ctas_kv_counter_buffer=None,
        enable_block_sparse_attention=False, bf16q_fp8kv_transform_mode=None, *,
        split_kv_len=0, score_slots=0, row_replicas=0, emulator_seed=0, q_dtype=None, kv_dtype=None,
        stream=None):
    """Attention of the newest tokens of each request against a paged KV cache.

    query: (batch * q_len_per_req, q heads, d), or (all tokens, q heads, d) with cum_seq_lens_q
        int32 (batch + 1,) and max_q_len.
    kv_cache: (k, v) of (pages, KV heads, page size, d), kv_layout "NHD" swaps the middle two; or
        one 5-D tensor with 2 in dimension 1. Read in place.
    workspace_buffer: any contiguous tensor on the device of query, not necessarily zeroed; None =
        Deuce keeps its own.
    block_tables: int32 (batch, columns). seq_lens: int32 (batch,), read when the kernel runs; at
        most max_seq_len keys are visible in a request.
    bmm1_scale: q scale * k scale * softmax scale; a number, or for an fp8 cache a one-element
        float32 tensor read when the kernel runs. bmm2_scale: v scale, likewise.
    returns: out (tokens, q heads, d), or (out, lse) with return_lse; LSE base 2, float32, (tokens,
        q heads). Causal whenever a request has several tokens.
    errors: deuce.Error and its subclasses; nothing is written then. Thread-safe. Capturable once
        the same call has run eagerly. Does not synchronise. Source of the meaning: FlashInfer.
    """
    _refuse.unless_default(
        o_sf_scale=(o_sf_scale, None), o_sf_vec_size=(o_sf_vec_size, None), mask=(mask, None),
        skip_softmax_threshold_scale_factor=(skip_softmax_threshold_scale_factor, None),
        kv_cache_sf=(kv_cache_sf, None), uses_shared_paged_kv_idx=(uses_shared_paged_kv_idx, True),
        bmm1_scale_log2=(bmm1_scale_log2, None), o_scale=(o_scale, 1.0),
        multi_ctas_kv_counter_buffer=(multi_ctas_kv_counter_buffer, None),
        enable_block_sparse_attention=(enable_block_sparse_attention, False),
        bf16q_fp8kv_transform_mode=(bf16q_fp8kv_transform_mode, None))
    if out_dtype == "nvfp4":
        raise errors.Unsupported(
            "out_dtype is 'nvfp4': not supported by any backend, pass bfloat16, float16 or float32",
            "out_dtype", out_dtype)
    if isinstance(sinks, (list, tuple)):
        if len(sinks) != 1:
            raise errors.InvalidArgument(
                f"sinks has {len(sinks)} members: one tensor is needed", "sinks")
        sinks = sinks[0]
    k_cache, v_cache = _refuse.kv_pair(kv_cache, "kv_cache")
    score_tensor, score_scale = _scale(bmm1_scale, "bmm1_scale")
    out_tensor, out_scale = _scale(bmm2_scale, "bmm2_scale")
    options = _Options(max_seq_len, window_left, out_dtype, kv_layout, backend, q_len_per_req,
                       max_q_len, bool(enable_pdl), split_kv_len, score_slots, row_replicas,
                       emulator_seed, q_dtype, kv_dtype)
    out, lse = decode(
        _ENTRY, options, query, k_cache, v_cache, out=out, lse=lse, want_lse=return_lse,
        kv_len=seq_lens, cu_q_len=cum_seq_lens_q, block_table=block_tables, sink=sinks,
        k_descale=score_tensor, v_descale=out_tensor, score_scale=score_scale, out_scale=out_scale,
        workspace=workspace_buffer, stream=stream)
    return (out, lse) if return_lse else out
