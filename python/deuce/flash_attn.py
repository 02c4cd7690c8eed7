# SPDX-License-Identifier: Apache-2.0
"""Decode attention under FlashAttention's names: change the import and keep the call.

Every parameter of FlashAttention 2, 3 and 4 and of vLLM's fork exists here and has their meaning;
what no backend serves is refused by name. The table of all parameters is in docs/python.md.
"""
from typing import NamedTuple

from . import _config, _refuse, errors
from ._decode import decode
from ._prepare import Entry, Request, batch_of, expect_rank

CACHE_AXES = {"NHD": (0, 1, 2), "HND": (0, 2, 1)}  # page or row, slot, KV head


class SchedulerMetadata:
    """Stands where FlashAttention 3 has a prepared schedule. Empty: the work is cut from live
    lengths when the kernel runs, nothing is planned on the host."""

    __slots__ = ()


_METADATA = SchedulerMetadata()


class _Options(NamedTuple):
    """What shapes the plan beside the tensors."""

    max_seqlen_q: object
    max_seqlen_k: object
    softmax_scale: object
    causal: object
    window_size: object
    softcap: object
    num_splits: object
    split_kv_len: object
    score_slots: object
    row_replicas: object
    emulator_seed: object
    sm_margin: object
    backend: object
    kv_layout: object
    q_dtype: object
    kv_dtype: object


def cache_axes(kv_layout):
    """Where (page or row, slot, KV head) stand in a 4-D cache."""
    axes = CACHE_AXES.get(kv_layout)
    if axes is None:
        raise errors.InvalidArgument(f"kv_layout is {kv_layout!r}: it must be 'NHD' or 'HND'",
                                     "kv_layout", kv_layout)
    return axes


def _query(options, q, cu_q_len):
    """The facts of a Request that follow from the query, (b, s, h, d) or packed (t, h, d)."""
    if cu_q_len is None:
        expect_rank(q, 4, "(batch, tokens, heads, head dim)")
        batch, q_len, heads, _ = q.shape
        if options.max_seqlen_q not in (None, q_len):
            raise errors.InvalidArgument(
                f"max_seqlen_q is {options.max_seqlen_q} but q has {q_len} tokens per request and "
                "there is no cu_seqlens_q", "max_seqlen_q", options.max_seqlen_q)
        return dict(batch=batch, q_len=q_len, q_form="bsh", lse_form="bhs",
                    out_shape=q.shape, lse_shape=(batch, heads, q_len))
    expect_rank(q, 3, "(tokens, heads, head dim) with cu_seqlens_q")
    expect_rank(cu_q_len, 1, "(batch + 1)")
    if options.max_seqlen_q is None:
        raise errors.InvalidArgument("max_seqlen_q is required with cu_seqlens_q", "max_seqlen_q")
    tokens, heads, _ = q.shape
    return dict(batch=batch_of(cu_q_len.shape[0], "cu_seqlens_q"),
                q_len=_config.integer(options.max_seqlen_q, "max_seqlen_q"), q_form="th",
                lse_form="ht", out_shape=q.shape, lse_shape=(heads, tokens))


def _build(options, layouts):
    q, k, v, table = (layouts[field] for field in ("q", "k", "v", "block_table"))
    facts = _query(options, q, layouts["cu_q_len"])
    if len(k.shape) == 3:  # packed keys: all requests share one cache row
        axes = (None, 0, 1)
    else:
        axes = cache_axes(options.kv_layout)
    for layout in (k, v):
        expect_rank(layout, len(axes) + 1 - (axes[0] is None),
                    "(pages or rows, slots, heads, head dim) in the order of kv_layout")
    facts["out_shape"] = (*q.shape[:-1], v.shape[-1])
    capacity = k.shape[axes[1]]
    if table is not None:
        expect_rank(table, 2, "(batch, columns)")
        capacity *= table.shape[1]
    left, right = _config.window(options.window_size)
    return Request(
        **facts, cache_axes=axes, paged=table is not None, capacity=capacity,
        q_dtype=options.q_dtype, kv_dtype=options.kv_dtype,
        config=dict(
            _config.backend_fields(options.backend), causal=int(bool(options.causal)),
            softmax_scale=_config.softmax_scale(options.softmax_scale), softcap=options.softcap,
            window_left=left, window_right=right, num_splits=options.num_splits,
            split_kv_len=options.split_kv_len, score_slots=options.score_slots,
            row_replicas=options.row_replicas, emulator_seed=options.emulator_seed,
            sm_margin=options.sm_margin,
            max_kv_len=_config.bound(capacity) if options.max_seqlen_k is None
            else options.max_seqlen_k))


_NAMES = {"k": "k_cache", "v": "v_cache", "lse": "softmax_lse", "kv_len": "cache_seqlens",
          "kv_start": "cache_leftpad", "cu_q_len": "cu_seqlens_q", "cache_row": "cache_batch_idx",
          "sink": "sinks"}
_KVCACHE = Entry(_NAMES, _build)
_VARLEN = Entry({**_NAMES, "k": "k", "v": "v", "kv_len": "seqused_k", "kv_start": "cu_seqlens_k"},
                _build)


def _check_tuning(scheduler_metadata, pack_gqa):
    if scheduler_metadata is not None and not isinstance(scheduler_metadata, SchedulerMetadata):
        raise errors.Unsupported("scheduler_metadata comes from another library: pass None or what "
                                 "deuce.get_scheduler_metadata returns", "scheduler_metadata")
    if pack_gqa is not None and pack_gqa is not True:
        raise errors.Unsupported(
            f"pack_gqa is {pack_gqa!r}: rows are always packed, pass None or True", "pack_gqa",
            pack_gqa)


def flash_attn_with_kvcache(
        q, k_cache, v_cache, k=None, v=None, *positional,
        qv=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None, cache_batch_idx=None,
        cache_leftpad=None, block_table=None, page_table=None, cu_seqlens_q=None,
        cu_seqlens_k_new=None, max_seqlen_q=None, rotary_seqlens=None, q_descale=None,
        k_descale=None, v_descale=None, softmax_scale=None, causal=False, window_size=(-1, -1),
        attention_chunk=0, softcap=0.0, rotary_interleaved=True, alibi_slopes=None,
        scheduler_metadata=None, num_splits=0, pack_gqa=None, sm_margin=0,
        return_softmax_lse=False,
        out=None, softmax_lse=None, sinks=None, s_aux=None, learnable_sink=None, kv_layout="NHD",
        max_seqlen_k=None, k_token_scale=None, v_token_scale=None, split_kv_len=0, score_slots=0,
        row_replicas=0, emulator_seed=0, q_dtype=None, kv_dtype=None, workspace=None, stream=None,
        backend="auto"):
    """Attention of the newest tokens of each request against its KV cache.

    q: (batch, tokens, q heads, d), or packed (all tokens, q heads, d) with cu_seqlens_q and
        max_seqlen_q. float32, float16, bfloat16, float8_e4m3fn or float8_e5m2; integers that hold
        them with q_dtype.
    k_cache, v_cache: (rows, slots, KV heads, d), or with block_table (pages, page size, KV heads,
        d); kv_layout "HND" swaps the middle two. Any strides, the last dimension contiguous.
        Read in place on the device of q.
    cache_seqlens: int, or int32 (batch,) read when the kernel runs; None = the whole capacity.
    block_table or page_table: int32 (batch, columns).
    returns: out, or (out, lse) with return_softmax_lse: out as q but with V's head dimension, LSE
        natural, float32, (batch, q heads, tokens) or (q heads, all tokens).
    errors: deuce.Error and its subclasses, each naming the argument; nothing is written then.
    Thread-safe. Capturable in a CUDA graph once the same call has run eagerly. Does not
        synchronise.
    All other parameters: docs/python.md. Source of the meaning: FlashAttention 2 and 3.
    """
    if positional:
        _refuse.positional("flash_attn_with_kvcache", positional,
                           "such as cache_seqlens=, block_table= or rotary_cos=")
    if not (k is v is qv is rotary_cos is rotary_sin is rotary_seqlens is cu_seqlens_k_new
            is alibi_slopes is None) or attention_chunk != 0:
        _refuse.unless_default(k=(k, None), v=(v, None), qv=(qv, None),
                               rotary_cos=(rotary_cos, None), rotary_sin=(rotary_sin, None),
                               rotary_seqlens=(rotary_seqlens, None),
                               cu_seqlens_k_new=(cu_seqlens_k_new, None),
                               attention_chunk=(attention_chunk, 0),
                               alibi_slopes=(alibi_slopes, None))
    if scheduler_metadata is not None or pack_gqa is not None:
        _check_tuning(scheduler_metadata, pack_gqa)
    if page_table is not None:
        block_table = _refuse.one_name(block_table=block_table, page_table=page_table)
    if s_aux is not None or learnable_sink is not None:
        sinks = _refuse.one_name(sinks=sinks, s_aux=s_aux, learnable_sink=learnable_sink)
    if cache_batch_idx is not None and block_table is not None:
        raise errors.Unsupported(
            "cache_batch_idx is given with a page table: the table says where the keys are, pass "
            "None", "cache_batch_idx")
    lengths, length = _refuse.length(cache_seqlens, "cache_seqlens")
    options = _Options(max_seqlen_q, max_seqlen_k, softmax_scale, causal,
                       window_size if type(window_size) is tuple else _config.window(window_size),
                       softcap, num_splits, split_kv_len, score_slots, row_replicas,
                       emulator_seed, sm_margin, backend, kv_layout, q_dtype, kv_dtype)
    out, softmax_lse = decode(
        _KVCACHE, options, q, k_cache, v_cache, out=out, lse=softmax_lse,
        want_lse=return_softmax_lse, kv_len=lengths, kv_len_all=length, kv_start=cache_leftpad,
        cu_q_len=cu_seqlens_q, cache_row=cache_batch_idx, block_table=block_table, sink=sinks,
        q_descale=q_descale, k_descale=k_descale, v_descale=v_descale, k_token_scale=k_token_scale,
        v_token_scale=v_token_scale, workspace=workspace, stream=stream)
    return (out, softmax_lse) if return_softmax_lse else out


def flash_attn_varlen_func(
        q, k, v, *positional, max_seqlen_q=None, cu_seqlens_q=None, max_seqlen_k=None,
        cu_seqlens_k=None, seqused_q=None, seqused_k=None, q_v=None, qv=None, dropout_p=0.0,
        softmax_scale=None, causal=False, window_size=(-1, -1), attention_chunk=0, softcap=0.0,
        alibi_slopes=None, deterministic=False, return_attn_probs=False, block_table=None,
        page_table=None, return_softmax_lse=False, return_lse=False, out=None,
        scheduler_metadata=None, q_descale=None, k_descale=None, v_descale=None, num_splits=0,
        pack_gqa=None, sm_margin=0, fa_version=None, s_aux=None, learnable_sink=None,
        cp_world_size=1, cp_rank=0, cp_tot_seqused_k=None, score_mod=None, mask_mod=None,
        block_sparse_tensors=None, gather_kv_indices=None, aux_tensors=None, aux_scalars=None,
        softmax_lse=None, kv_layout="NHD", split_kv_len=0, score_slots=0, row_replicas=0,
        emulator_seed=0, q_dtype=None, kv_dtype=None, workspace=None, stream=None, backend="auto"):
    """flash_attn_with_kvcache in the form that vLLM and FlashAttention 4 call; decoding only.

    q: packed (all tokens, q heads, d) with cu_seqlens_q int32 (batch + 1,) and max_seqlen_q, or
        padded (batch, tokens, q heads, d).
    k, v: pages (pages, page size, KV heads, d) with block_table or page_table and seqused_k; rows
        (batch, slots, KV heads, d) with seqused_k; or packed keys (all keys, KV heads, d) with
        cu_seqlens_k int32 (batch + 1,).
    returns: out, or (out, lse) with return_softmax_lse or return_lse; LSE natural, float32,
        (q heads, all tokens) or (batch, q heads, tokens).
    Differs from theirs: no backward pass; everything after v by name, for the two disagree on the
    order. errors, threads, graphs and all other parameters as in flash_attn_with_kvcache.
    """
    if positional:
        _refuse.positional("flash_attn_varlen_func", positional,
                           "such as cu_seqlens_q=, max_seqlen_q= or seqused_k=")
    _refuse.unless_default(
        dropout_p=(dropout_p, 0.0), alibi_slopes=(alibi_slopes, None), q_v=(q_v, None),
        qv=(qv, None), score_mod=(score_mod, None), mask_mod=(mask_mod, None),
        block_sparse_tensors=(block_sparse_tensors, None),
        gather_kv_indices=(gather_kv_indices, None), aux_tensors=(aux_tensors, None),
        aux_scalars=(aux_scalars, None), return_attn_probs=(return_attn_probs, False),
        fa_version=(fa_version, None), cp_world_size=(cp_world_size, 1), cp_rank=(cp_rank, 0),
        cp_tot_seqused_k=(cp_tot_seqused_k, None), seqused_q=(seqused_q, None),
        attention_chunk=(attention_chunk, 0))
    _check_tuning(scheduler_metadata, pack_gqa)
    table = _refuse.one_name(block_table=block_table, page_table=page_table)
    starts = None
    if cu_seqlens_k is not None:
        if table is not None or seqused_k is not None:
            raise errors.Unsupported(
                f"cu_seqlens_k is given with {'seqused_k' if table is None else 'a page table'}: "
                "pass one of them", "cu_seqlens_k")
        shape = getattr(cu_seqlens_k, "shape", None)
        if not shape or shape[0] < 1:
            raise errors.InvalidArgument(
                f"cu_seqlens_k is {'a ' + type(cu_seqlens_k).__name__ if shape is None else 'empty'}"
                ": an int32 tensor (batch + 1,) is needed", "cu_seqlens_k")
        starts, seqused_k = cu_seqlens_k[:-1], cu_seqlens_k[1:]
    elif len(k.shape) == 3:
        raise errors.InvalidArgument("cu_seqlens_k is required with packed keys", "cu_seqlens_k")
    if cu_seqlens_k is not None and len(k.shape) != 3:
        raise errors.InvalidArgument(
            f"k has shape {tuple(k.shape)}: with cu_seqlens_k packed keys (all keys, KV heads, "
            "head dim) are needed", "k")
    options = _Options(max_seqlen_q, max_seqlen_k, softmax_scale, causal,
                       (-1, -1) if window_size is None else _config.window(window_size), softcap,
                       num_splits, split_kv_len, score_slots, row_replicas, emulator_seed, sm_margin,
                       backend, kv_layout, q_dtype, kv_dtype)
    lengths, length = _refuse.length(seqused_k, "seqused_k")
    want_lse = return_softmax_lse or return_lse
    out, softmax_lse = decode(
        _VARLEN, options, q, k, v, out=out, lse=softmax_lse, want_lse=want_lse, kv_len=lengths,
        kv_len_all=length, kv_start=starts, cu_q_len=cu_seqlens_q, block_table=table,
        sink=_refuse.one_name(s_aux=s_aux, learnable_sink=learnable_sink), q_descale=q_descale,
        k_descale=k_descale, v_descale=v_descale, workspace=workspace, stream=stream)
    return (out, softmax_lse) if want_lse else out


def get_scheduler_metadata(
        batch_size, max_seqlen_q, max_seqlen_k, num_heads_q, num_heads_kv, headdim, cache_seqlens,
        qkv_dtype=None, headdim_v=None, cu_seqlens_q=None, cu_seqlens_k_new=None,
        cache_leftpad=None, page_size=None, max_seqlen_k_new=0, causal=False, window_size=(-1, -1),
        attention_chunk=0, has_softcap=False, num_splits=0, pack_gqa=None, sm_margin=0):
    """An empty token for the scheduler_metadata argument; nothing is read and nothing is planned.

    FlashAttention 3's signature, so that its callers run unchanged. What flash_attn_with_kvcache
    would refuse is refused here too. Thread-safe, capturable.
    """
    _refuse.unless_default(cu_seqlens_k_new=(cu_seqlens_k_new, None),
                           max_seqlen_k_new=(max_seqlen_k_new, 0),
                           attention_chunk=(attention_chunk, 0))
    _check_tuning(None, pack_gqa)
    return _METADATA
