# SPDX-License-Identifier: Apache-2.0
"""FlashInfer's call for one request with a contiguous cache: no plan, no page table, one token.

The quickest way to try Deuce on two arrays. The LSE is base 2, as FlashInfer's is.
"""
from typing import NamedTuple

from . import _config, _refuse, _tensor
from ._decode import decode
from ._prepare import Entry, Request, expect_rank, held_dtype
from .flash_attn import cache_axes
from .flashinfer import host_scale


class _Options(NamedTuple):
    kv_layout: object
    window_left: object
    softcap: object
    softmax_scale: object
    backend: object
    q_dtype: object
    kv_dtype: object


def _build(options, layouts):
    q, k, v = (layouts[field] for field in ("q", "k", "v"))
    expect_rank(q, 2, "(heads, head dim)")
    _, slot, head = cache_axes(options.kv_layout)
    axes = (None, slot - 1, head - 1)  # one cache row, which has no axis
    for layout in (k, v):
        expect_rank(layout, 3, "(keys, heads, head dim) in the order of kv_layout")
    keys = k.shape[axes[1]]
    return Request(
        batch=1, q_len=1, q_form="h", lse_form="h", cache_axes=axes, paged=False, capacity=keys,
        out_shape=(q.shape[0], v.shape[-1]), lse_shape=q.shape[:1], q_dtype=options.q_dtype,
        kv_dtype=options.kv_dtype,
        config=dict(_config.backend_fields(options.backend), lse_base=2,
                    softcap=0.0 if options.softcap is None else options.softcap,
                    softmax_scale=_config.softmax_scale(options.softmax_scale, "sm_scale"),
                    window_left=options.window_left, max_kv_len=_config.bound(keys)))


_ENTRY = Entry({}, _build)


def _scale(value, name, tensor, tensor_name, dtype, dtype_name):
    if value is None or value == 1.0:
        return 1.0
    _, key, _ = _tensor.read(tensor, tensor_name)
    layout = _tensor.describe(tensor, key, tensor_name)
    return host_scale(value, name, held_dtype(layout, dtype, dtype_name))


def single_decode_with_kv_cache(
        q, k, v, kv_layout="NHD", pos_encoding_mode="NONE", use_tensor_cores=False, q_scale=None,
        k_scale=None, v_scale=None, window_left=-1, logits_soft_cap=None, sm_scale=None,
        rope_scale=None, rope_theta=None, return_lse=False, *, out=None, lse=None, q_dtype=None,
        kv_dtype=None, workspace=None, stream=None, backend="auto"):
    """Attention of one token against all keys of one request.

    q: (q heads, d). k, v: (keys, KV heads, d), or (KV heads, keys, d) with kv_layout "HND"; any
        strides, the last dimension contiguous; read in place.
    q_scale, k_scale, v_scale: host numbers for fp8 tensors. window_left: keys before the own one,
        -1 = all. logits_soft_cap: None or 0 = off. sm_scale: None = 1 / sqrt(d).
    use_tensor_cores has no meaning here, by its own definition as a hint.
    returns: out (q heads, d of v), or (out, lse) with return_lse; lse float32, base 2, (q heads,).
    errors: deuce.Error and its subclasses; nothing is written then. Thread-safe. Does not
        synchronise. Source of the meaning: FlashInfer.
    """
    _refuse.unless_default(pos_encoding_mode=(pos_encoding_mode, "NONE"),
                           rope_scale=(rope_scale, None), rope_theta=(rope_theta, None))
    score_scale = (_scale(q_scale, "q_scale", q, "q", q_dtype, "q_dtype")
                   * _scale(k_scale, "k_scale", k, "k", kv_dtype, "kv_dtype"))
    out_scale = _scale(v_scale, "v_scale", v, "v", kv_dtype, "kv_dtype")
    options = _Options(kv_layout, window_left, logits_soft_cap, sm_scale, backend, q_dtype,
                       kv_dtype)
    out, lse = decode(_ENTRY, options, q, k, v, out=out, lse=lse, want_lse=return_lse,
                      score_scale=score_scale, out_scale=out_scale, workspace=workspace,
                      stream=stream)
    return (out, lse) if return_lse else out
