# SPDX-License-Identifier: Apache-2.0
"""Decode attention in FlashInfer's shape: a wrapper with plan and run, and the single-request call.

plan() here copies nothing to the host and reads no length: it keeps the index tensors and fixes
what shapes the kernel; run() reads lengths and tables where they lie. The LSE is base 2, as theirs.
"""
import ctypes
from typing import NamedTuple

from . import _abi, _config, _refuse, _tensor, errors
from ._decode import decode
from ._library import library, raise_status
from ._plan import WORKSPACE_ALIGNMENT
from ._prepare import Entry, Request, batch_of, expect_rank
from .flash_attn import cache_axes


class _Options(NamedTuple):
    """What a plan() fixed, C's meaning."""

    batch: int
    q_len: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    page_size: int
    max_kv_len: int
    kv_layout: str
    q_dtype: str
    kv_dtype: str
    out_dtype: object
    causal: int
    window_left: int
    window_right: int
    softcap: float
    softmax_scale: float
    num_splits: int
    split_kv_len: int
    row_replicas: int
    emulator_seed: int
    backend: str
    flags: int

    def config(self):
        """The fields of deuce_decode_config that do not follow from tensors."""
        return dict(_config.backend_fields(self.backend), lse_base=2, max_kv_len=self.max_kv_len,
                    **{name: getattr(self, name) for name in (
                        "causal", "window_left", "window_right", "softcap", "softmax_scale",
                        "num_splits", "split_kv_len", "row_replicas", "emulator_seed", "flags")})


def _planned(name, found, expected):
    if found != expected:
        raise errors.InvalidArgument(f"{name} is {found}: plan() was told {expected}", name, found)


def _build(options, layouts):
    q, k, v, table = (layouts[field] for field in ("q", "k", "v", "block_table"))
    expect_rank(q, 3, "(tokens, heads, head dim)")
    axes = cache_axes(options.kv_layout)
    for layout in (k, v):
        expect_rank(layout, 4, "(pages, ...) in the order of kv_layout")
    _planned("tokens in q", q.shape[0], options.batch * options.q_len)
    _planned("num_qo_heads", q.shape[1], options.num_q_heads)
    _planned("head_dim", q.shape[2], options.head_dim)
    _planned("num_kv_heads", k.shape[axes[2]], options.num_kv_heads)
    _planned("page_size", k.shape[axes[1]], options.page_size)
    return Request(
        batch=options.batch, q_len=options.q_len, q_form="th", lse_form="th", cache_axes=axes,
        paged=True, out_shape=(*q.shape[:-1], v.shape[-1]), lse_shape=q.shape[:-1],
        capacity=0 if table is None else table.shape[1] * options.page_size,
        q_dtype=options.q_dtype, kv_dtype=options.kv_dtype, out_dtype=options.out_dtype,
        config=options.config())


_NAMES = {"sink": "sinks", "q_dtype": "q_data_type", "kv_dtype": "kv_data_type"}
_BATCH = Entry({**_NAMES, "k": "paged_kv_cache", "v": "paged_kv_cache", "page_indptr": "indptr",
                "page_indices": "indices", "block_table": "block_tables",
                "kv_len": "seq_lens"}, _build)


def _data_type(value, name):
    if str(value).rpartition(".")[2] in ("uint8", "<class 'numpy.uint8'>"):
        raise errors.Unsupported(
            f"{name} is uint8 (NVFP4): not supported by any backend; for fp8 bytes name the fp8 "
            "type", name, value)
    return _config.dtype_name(value, name)


def _split_tokens(pages, page_size):
    """split_kv_len of a fixed split given in pages."""
    if pages is None:
        return 0
    tokens = _config.integer(pages, "fixed_split_size") * page_size
    if tokens <= 0 or tokens % 128:
        raise errors.InvalidArgument(
            f"fixed_split_size is {pages} pages of {page_size} tokens: a multiple of 128 tokens is "
            "needed", "fixed_split_size", pages)
    return tokens


def host_scale(value, name, dtype):
    """A host factor that belongs to an fp8 tensor; 1.0 for None."""
    if value is None:
        return 1.0
    number = _config.factor(value, name)
    if number != 1.0 and not dtype.startswith("float8"):
        raise errors.InvalidArgument(
            f"{name} is {number} but the tensor is {dtype}: only fp8 tensors have scales, pass "
            "None or 1.0", name, value)
    return number


class BatchDecodeWithPagedKVCacheWrapper:
    """Batched decoding over a paged KV cache: plan() once per batch layout, run() per layer.

    float_workspace_buffer: contiguous tensor on the device of the cache, need not be zeroed; None =
        Deuce keeps its own. kv_layout: "NHD" (pages, page size, KV heads, d) or "HND".
    use_cuda_graph: plan() then copies its tensors into the three given buffers, whose addresses a
        captured run() keeps; the batch is fixed by their size.
    backend: auto, hopper, blackwell, cpu, emulator or reference.
    use_tensor_cores has no meaning here, by its own definition as a hint. jit_args: None only.
    One wrapper serves one thread and stream at a time. Source of the meaning: FlashInfer.
    """

    def __init__(self, float_workspace_buffer, kv_layout="NHD", use_cuda_graph=False,
                 use_tensor_cores=False, paged_kv_indptr_buffer=None, paged_kv_indices_buffer=None,
                 paged_kv_last_page_len_buffer=None, backend="auto", jit_args=None):
        _refuse.unless_default(jit_args=(jit_args, None))
        cache_axes(kv_layout)
        _config.backend_fields(backend)
        self._workspace, self._kv_layout, self._backend = float_workspace_buffer, kv_layout, backend
        self._buffers = (paged_kv_indptr_buffer, paged_kv_indices_buffer,
                         paged_kv_last_page_len_buffer)
        self._use_cuda_graph = bool(use_cuda_graph)
        given = [buffer is not None for buffer in self._buffers]
        if any(given) and not use_cuda_graph:
            raise errors.InvalidArgument("use_cuda_graph is False but a buffer for graphs is given",
                                         "use_cuda_graph")
        if use_cuda_graph and not all(given):
            raise errors.InvalidArgument(
                "use_cuda_graph needs paged_kv_indptr_buffer, paged_kv_indices_buffer and "
                "paged_kv_last_page_len_buffer", "use_cuda_graph")
        self._options = None

    @property
    def is_cuda_graph_enabled(self):
        """Whether plan() copies into buffers with fixed addresses."""
        return self._use_cuda_graph

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffer=None):
        """Use another workspace from now on. int_workspace_buffer has no meaning here: the counters
        lie in the first."""
        self._workspace = float_workspace_buffer

    def plan(self, indptr, indices, last_page_len, num_qo_heads, num_kv_heads, head_dim, page_size,
             *positional, pos_encoding_mode="NONE", window_left=-1, window_right=0,
             logits_soft_cap=None, q_data_type="float16", kv_data_type=None, o_data_type=None,
             data_type=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True,
             block_tables=None, seq_lens=None, fixed_split_size=None, disable_split_kv=False,
             q_len_per_req=1, row_replicas=0, emulator_seed=0):
        """Fix the layout of the next runs; refuses here what no run could do.

        indptr: int32 (batch + 1,). indices: int32 page ids. last_page_len: int32 (batch,), 1 ..
            page_size. seq_lens: int32 (batch,), decides when given. block_tables: int32 (batch,
            columns) in place of indices, with seq_lens. All are read when run()'s kernel runs.
        window_right: 0 = causal when q_len_per_req > 1; -1 = not causal; n = n keys ahead.
        fixed_split_size: pages; a multiple of 128 tokens, makes results independent of the batch.
        non_blocking: how graph buffers are copied. All other parameters: docs/python.md.
        Not capturable. Copies nothing to the host.
        """
        if positional:
            _refuse.positional("plan", positional, "such as pos_encoding_mode= or window_left=")
        _refuse.unless_default(pos_encoding_mode=(pos_encoding_mode, "NONE"),
                               rope_scale=(rope_scale, None), rope_theta=(rope_theta, None))
        if data_type is not None:
            raise errors.Unsupported(
                "data_type is given: name q_data_type and kv_data_type", "data_type")
        q_dtype = _data_type(q_data_type, "q_data_type")
        kv_dtype = q_dtype if kv_data_type is None else _data_type(kv_data_type, "kv_data_type")
        batch = batch_of(len(indptr), "indptr")
        if block_tables is not None and seq_lens is None:
            raise errors.InvalidArgument("seq_lens is required with block_tables", "seq_lens")
        columns = len(indices) if block_tables is None else block_tables.shape[1]
        page_size, q_len, window_right = (_config.integer(value, name) for value, name in (
            (page_size, "page_size"), (q_len_per_req, "q_len_per_req"),
            (window_right, "window_right")))
        if page_size < 1:
            raise errors.InvalidArgument(
                f"page_size is {page_size}: it must be 1 or more", "page_size")
        if self._use_cuda_graph:
            columns = len(self._buffers[1])  # a replay may use every index of the buffer
        options = _Options(
            batch=batch, q_len=q_len, num_q_heads=num_qo_heads, num_kv_heads=num_kv_heads,
            head_dim=head_dim, page_size=page_size, max_kv_len=_config.bound(columns * page_size),
            kv_layout=self._kv_layout, q_dtype=q_dtype, kv_dtype=kv_dtype,
            out_dtype=o_data_type and _config.dtype_name(o_data_type, "o_data_type"),
            causal=int(q_len > 1 and window_right == 0), window_left=window_left,
            window_right=window_right or -1, softcap=logits_soft_cap or 0.0,
            softmax_scale=_config.softmax_scale(sm_scale, "sm_scale"),
            num_splits=int(bool(disable_split_kv)),
            split_kv_len=_split_tokens(fixed_split_size, page_size), row_replicas=row_replicas,
            emulator_seed=emulator_seed, backend=self._backend, flags=0)
        self._config = self._check(options, indptr)
        if block_tables is not None:
            indptr = indices = last_page_len = None
        self._tables = self._placed(indptr, indices, last_page_len, non_blocking)
        self._block_tables, self._seq_lens = (
            _on_device(tensor, self._workspace, non_blocking)
            for tensor in (block_tables, seq_lens))
        self._options = options

    begin_forward = plan

    def _check(self, options, indptr):
        """The config of the coming runs, refused here if no run of it would be accepted."""
        home = ("indptr", indptr) if self._workspace is None else ("float_workspace_buffer",
                                                                   self._workspace)
        device = _tensor.device_of(*home)
        config = _config.make_config(
            num_q_heads=options.num_q_heads, num_kv_heads=options.num_kv_heads,
            head_dim_qk=options.head_dim, head_dim_v=options.head_dim, q_dtype=options.q_dtype,
            kv_dtype=options.kv_dtype, out_dtype=options.out_dtype or 0,
            page_size=options.page_size, max_batch=_config.bound(options.batch),
            max_q_len=max(options.q_len, 1), device_type=device[0],
            device_id=device[1] if device[0] == _abi.DEVICE_CUDA else -1, **options.config())
        status = library.deuce_decode_check(config)
        if status:
            raise_status(status, config)
        return config

    def workspace_size(self):
        """(bytes, 0): what float_workspace_buffer must hold for the last plan(), at any address.
        FlashInfer's second number is for its integer workspace, which does not exist here."""
        if self._options is None:
            raise errors.InvalidArgument("plan() has not been called", "plan")
        size = ctypes.c_size_t()
        status = library.deuce_decode_workspace_size(self._config, ctypes.byref(size), None)
        if status:
            raise_status(status, self._config)
        return size.value + WORKSPACE_ALIGNMENT - 1, 0

    def _placed(self, indptr, indices, last_page_len, non_blocking):
        """The tables that run() will read: as given, or copied into the buffers for graphs."""
        tensors = [_on_device(tensor, self._workspace, non_blocking)
                   for tensor in (indptr, indices, last_page_len)]
        if not self._use_cuda_graph or indptr is None:
            return tensors
        names = ("indptr", "indices", "last_page_len")
        for name, tensor, buffer in zip(names, tensors, self._buffers):
            fixed = name != "indices"
            if len(tensor) > len(buffer) or (fixed and len(tensor) != len(buffer)):
                raise errors.InvalidArgument(
                    f"{name} has {len(tensor)} elements: the buffer for graphs has {len(buffer)}"
                    f"{', and the batch is fixed by it' if fixed else ''}", name, len(tensor))
        for tensor, buffer in zip(tensors, self._buffers):
            if hasattr(buffer, "copy_"):
                buffer[:len(tensor)].copy_(tensor, non_blocking=bool(non_blocking))
            else:
                buffer[:len(tensor)] = tensor
        return list(self._buffers)

    def run(self, q, paged_kv_cache, *args, q_scale=None, k_scale=None, v_scale=None, out=None,
            lse=None, return_lse=False, enable_pdl=None, window_left=None, sinks=None,
            q_len_per_req=None, skip_softmax_threshold_scale_factor=None, kv_cache_sf=None):
        """Attention of one layer in the layout of the last plan().

        q: (batch * q_len_per_req, q heads, d). paged_kv_cache: (k, v) of 4-D tensors, or one 5-D
            tensor with 2 in dimension 1. Read in place.
        q_scale, k_scale, v_scale: host numbers for fp8 tensors, frozen in a captured graph.
        sinks: (q heads,) float32, bfloat16 or float16. window_left, q_len_per_req: None, or as in
            plan(). enable_pdl: True = programmatic dependent launch, where a backend has it.
        returns: out (tokens, q heads, d), or (out, lse) with return_lse; lse float32, base 2,
            (tokens, q heads).
        errors: deuce.Error and its subclasses; nothing is written then. Capturable. Does not
            synchronise.
        """
        options = self._options
        if options is None:
            raise errors.InvalidArgument("plan() has not been called", "plan")
        if args:
            raise errors.Unsupported(
                "positional arguments after paged_kv_cache belong to jit_args: not supported by "
                "any backend", "args")
        if skip_softmax_threshold_scale_factor is not None or kv_cache_sf is not None:
            _refuse.unless_default(
                kv_cache_sf=(kv_cache_sf, None),
                skip_softmax_threshold_scale_factor=(skip_softmax_threshold_scale_factor, None))
        if window_left is not None:
            _planned("window_left", window_left, options.window_left)
        if q_len_per_req is not None:
            _planned("q_len_per_req", q_len_per_req, options.q_len)
        if enable_pdl:
            options = options._replace(flags=_abi.FLAG_PDL)
        k_cache, v_cache = _refuse.kv_pair(paged_kv_cache, "paged_kv_cache")
        indptr, indices, last_page_len = self._tables
        out, lse = decode(
            _BATCH, options, q, k_cache, v_cache, out=out, lse=lse, want_lse=return_lse,
            kv_len=self._seq_lens, block_table=self._block_tables, page_indptr=indptr,
            page_indices=indices, last_page_len=last_page_len, sink=sinks,
            score_scale=host_scale(q_scale, "q_scale", options.q_dtype)
            * host_scale(k_scale, "k_scale", options.kv_dtype),
            out_scale=host_scale(v_scale, "v_scale", options.kv_dtype), workspace=self._workspace)
        return (out, lse) if return_lse else out

    def run_return_lse(self, q, paged_kv_cache, *args, **keywords):
        """run() with return_lse=True."""
        return self.run(q, paged_kv_cache, *args, **{**keywords, "return_lse": True})


def _on_device(tensor, workspace, non_blocking):
    """A host index tensor of torch on the device of a CUDA workspace; everything else as it is."""
    device = getattr(workspace, "device", None)
    if tensor is None or getattr(device, "type", "cpu") == "cpu" or not hasattr(tensor, "to"):
        return tensor
    return tensor.to(device, non_blocking=bool(non_blocking))
