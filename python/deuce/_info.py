# SPDX-License-Identifier: Apache-2.0
"""What this library can do, asked of the library itself: check, explain, backends, shapes.

All answers come from deuce_decode_check and deuce_decode_explain, which run the code of plan
creation, so that "supported" and "runs" cannot differ.
"""
from typing import NamedTuple

from . import _abi, _config, _plan, errors
from ._library import library, raise_status

# What every backend serves if it serves anything.
_TYPICAL = dict(num_q_heads=8, num_kv_heads=1, head_dim_qk=128, head_dim_v=128, q_dtype="bfloat16",
                kv_dtype="bfloat16", max_batch=1, max_q_len=1, max_kv_len=1024)
_DTYPE_PAIRS = [(q, kv) for q in _abi.DTYPES for kv in _abi.DTYPES]


def check(**config):
    """Raise if no run of this configuration would be accepted; return None otherwise.

    config: fields of deuce_decode_config by their C names; backend and dtypes also by name
        (backend="cpu", q_dtype="bfloat16"). What is left out has its default; num_q_heads,
        num_kv_heads, head_dim_qk, head_dim_v, q_dtype, kv_dtype, max_batch, max_q_len and
        max_kv_len have none.
    errors: as plan creation would raise them. Launches nothing. Thread-safe.
    """
    made = _config.make_config(**config)
    status = library.deuce_decode_check(made)
    if status:
        raise_status(status, made)


def explain(function=None, *arguments, **keywords):
    """What a configuration or a call would run, as a dict: kernel, splits, workspace, and why not
    another backend.

    explain(**config) takes the fields of deuce_decode_config, as check() does.
    explain(deuce.flash_attn_with_kvcache, q, k_cache, ...) takes an entry point and its arguments;
        nothing is computed, and the answer then also counts splits and bytes. It may wait for the
        device to read lengths, so do not use this form while capturing a graph.
    """
    if function is None:
        return _plan.plan_for(_config.make_config(**keywords)).explain()
    state = _plan.thread_state
    state.explaining, state.explanation = True, None
    try:
        function(*arguments, **keywords)
    finally:
        state.explaining = False
    return state.explanation


class Shape(NamedTuple):
    """One accepted combination: what shapes() lists."""

    backend: str
    q_dtype: str
    kv_dtype: str
    head_dim: int
    smallest_page: int


def _accepts(backend, **fields):
    """Whether the library has code for this, with or without the device to run it."""
    config = _config.make_config(**{**_TYPICAL, "backend": backend, **fields})
    return library.deuce_decode_check(config) in (0, errors.NoDevice.status)


def backends():
    """Every backend of the library: name -> "ready", or the sentence that says what it lacks."""
    answers = {}
    for name in _abi.BACKENDS:
        if name == "auto":
            continue
        try:
            check(**_TYPICAL, backend=name)
            answers[name] = "ready"
        except errors.Error as error:
            answers[name] = str(error)
    return answers


def shapes():
    """All accepted (backend, q dtype, KV dtype, head dim) with the smallest page of each: a list of
    Shape. GPU kernels in the library count even where their device is missing."""
    found = []
    for backend, answer in backends().items():
        if "is not in this library" in answer:
            continue
        for q_dtype, kv_dtype in _DTYPE_PAIRS:
            for head_dim in range(8, 520, 8):
                fields = dict(q_dtype=q_dtype, kv_dtype=kv_dtype, head_dim_qk=head_dim,
                              head_dim_v=head_dim)
                if _accepts(backend, **fields):
                    smallest = next((page for page in (1, 2, 4, 8, 16, 32, 64, 128)
                                     if _accepts(backend, page_size=page, **fields)), 0)
                    found.append(Shape(backend, q_dtype, kv_dtype, head_dim, smallest))
    return found
