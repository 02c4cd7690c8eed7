# SPDX-License-Identifier: Apache-2.0
"""torch.ops.deuce.*: the functions as operators, so that torch.compile keeps one graph.

Registered by deuce.register_torch_ops() only, through torch.library.Library, whose calls cost less
than those of custom_op. Each operator has a functional form and an _out form that writes given
tensors; the fake implementations know shapes alone. Operators always return (out, lse).
"""
from .flash_attn import flash_attn_with_kvcache
from .trtllm import trtllm_batch_decode_with_kv_cache

_FLASH = """Tensor q, Tensor k_cache, Tensor v_cache, *, Tensor? cache_seqlens=None,
    SymInt? cache_length=None, Tensor? cache_batch_idx=None, Tensor? cache_leftpad=None,
    Tensor? block_table=None, Tensor? cu_seqlens_q=None, SymInt? max_seqlen_q=None,
    SymInt? max_seqlen_k=None, Tensor? q_descale=None, Tensor? k_descale=None,
    Tensor? v_descale=None, Tensor? k_token_scale=None, Tensor? v_token_scale=None,
    float? softmax_scale=None,
    bool causal=False, int window_left=-1, int window_right=-1, float softcap=0.0, int num_splits=0,
    int split_kv_len=0, int score_slots=0, int row_replicas=0, int emulator_seed=0,
    int sm_margin=0, Tensor? sinks=None, str kv_layout='NHD', str backend='auto'"""
_TRTLLM = """Tensor query, Tensor k_cache, Tensor v_cache, Tensor block_tables, Tensor seq_lens,
    SymInt max_seq_len, *, float bmm1_scale=1.0, float bmm2_scale=1.0,
    Tensor? bmm1_scale_tensor=None, Tensor? bmm2_scale_tensor=None, int window_left=-1,
    Tensor? sinks=None, str kv_layout='HND',
    int q_len_per_req=1, Tensor? cum_seq_lens_q=None, SymInt? max_q_len=None, int split_kv_len=0,
    int score_slots=0, int row_replicas=0, int emulator_seed=0, str backend='auto'"""
_RESULTS = "Tensor(a!) out, Tensor(b!) lse"

_library = None  # keeps the registrations alive


def _run_flash(q, k_cache, v_cache, *, out=None, lse=None, cache_length=None, cache_seqlens=None,
               window_left=-1, window_right=-1, **keywords):
    return flash_attn_with_kvcache(
        q, k_cache, v_cache, cache_seqlens=cache_seqlens if cache_length is None else cache_length,
        window_size=(window_left, window_right), out=out, softmax_lse=lse, return_softmax_lse=True,
        **keywords)


def _run_trtllm(query, k_cache, v_cache, block_tables, seq_lens, max_seq_len, *, bmm1_scale=1.0,
                bmm2_scale=1.0, bmm1_scale_tensor=None, bmm2_scale_tensor=None, **keywords):
    return trtllm_batch_decode_with_kv_cache(
        query, (k_cache, v_cache), None, block_tables, seq_lens, max_seq_len,
        bmm1_scale if bmm1_scale_tensor is None else bmm1_scale_tensor,
        bmm2_scale if bmm2_scale_tensor is None else bmm2_scale_tensor, return_lse=True, **keywords)


def _fake(q, v_cache, lse_shape):
    import torch
    dtype = torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype
    return (q.new_empty((*q.shape[:-1], v_cache.shape[-1]), dtype=dtype),
            q.new_empty(lse_shape, dtype=torch.float32))


def _fake_flash(q, k_cache, v_cache, **_):
    shape = (q.shape[0], q.shape[2], q.shape[1]) if q.dim() == 4 else (q.shape[1], q.shape[0])
    return _fake(q, v_cache, shape)


def _fake_trtllm(query, k_cache, v_cache, *_, **__):
    return _fake(query, v_cache, query.shape[:-1])


def _writes_only(run):
    def implementation(*arguments, out, lse, **keywords):
        run(*arguments, out=out, lse=lse, **keywords)
    return implementation


def register_torch_ops():
    """Register torch.ops.deuce.flash_attn_with_kvcache and .trtllm_batch_decode_with_kv_cache, each
    also as *_out writing the keyword tensors out and lse. Imports torch; calling twice is harmless.

    Differs from the functions: (out, lse) always; window_left and window_right in place of
    window_size; cache_length for an int; bmm1_scale_tensor and bmm2_scale_tensor for tensors.
    """
    global _library
    if _library is not None:
        return
    import torch
    library = torch.library.Library("deuce", "DEF")
    for name, schema, run, fake in (
            ("flash_attn_with_kvcache", _FLASH, _run_flash, _fake_flash),
            ("trtllm_batch_decode_with_kv_cache", _TRTLLM, _run_trtllm, _fake_trtllm)):
        library.define(f"{name}({schema}) -> (Tensor, Tensor)")
        library.define(f"{name}_out({schema}, {_RESULTS}) -> ()")
        for device in ("CPU", "CUDA"):
            library.impl(name, run, device)
            library.impl(f"{name}_out", _writes_only(run), device)
        library.impl(name, fake, "Meta")
        library.impl(f"{name}_out", lambda *_, **__: None, "Meta")
    _library = library
