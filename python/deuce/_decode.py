# SPDX-License-Identifier: Apache-2.0
"""The one path from Python tensors to deuce_decode_run, shared by every entry point.

The C struct of a call is filled once for each new combination of options, shapes and strides, and
kept for the thread; later calls only renew its pointers. Must hold: everything that shaped the kept
struct is part of its key.
"""
import ctypes

from . import _abi, _plan, _prepare, _tensor, errors
from ._library import library, raise_status

_FIRST_KEY = 4  # tensors follow entry, options, want_lse and whether the workspace is ours
_KEPT_CALLS = 1024  # more shapes than this in one thread: start over rather than grow for ever


def decode(entry, options, q, k, v, *, out=None, lse=None, want_lse=False, kv_len=None,
           kv_start=None, cu_q_len=None, cache_row=None, block_table=None, page_indptr=None,
           page_indices=None, last_page_len=None, sink=None, q_descale=None, k_descale=None,
           v_descale=None, k_token_scale=None, v_token_scale=None, kv_len_all=None, score_scale=1.0,
           out_scale=1.0, workspace=None, stream=None):
    """Run one call; returns (out, lse), with lse None when it was neither wanted nor given.

    entry: _prepare.Entry. options: hashable, all that is not a tensor and shapes the plan.
    kv_len_all: int, one length for all requests; None = the capacity of the cache.
    """
    tensors = (q, k, v, out, lse, kv_len, kv_start, cu_q_len, cache_row, block_table, page_indptr,
               page_indices, last_page_len, sink, q_descale, k_descale, v_descale, k_token_scale,
               v_token_scale)
    readers = _tensor.readers
    pointers, keys, owners = [], [entry, options, want_lse, workspace is None], []
    for tensor in tensors:
        if tensor is None:
            keys.append(None)
            continue
        reader = readers.get(type(tensor)) or _tensor.reader_of(
            tensor, entry.name(_prepare.TENSORS[len(keys) - _FIRST_KEY]))
        pointer, key, owner = reader(tensor)
        pointers.append(pointer)
        keys.append(key)
        if owner is not None:
            owners.append(owner)
    state = _plan.thread_state.current()
    key = (*keys, *map(type, options))  # True is 1 to a dict, and is refused where 1 is not
    try:
        kept = state.calls.get(key)
    except TypeError:  # an option that cannot be hashed: prepare() names it or makes a number of it
        key = kept = None
    if kept is None:
        kept = _prepare.prepare(entry, options, tensors, keys[_FIRST_KEY:], want_lse,
                                workspace is None)
        if len(state.calls) >= _KEPT_CALLS:
            state.calls.clear()
        if key is not None:
            state.calls[key] = kept

    args = kept.args
    for field, pointer in zip(kept.fields, pointers):
        setattr(args, field, pointer)
    if out is None:
        out = kept.new_out(q)
        args.out, _, owner = _tensor.read(out, "out")
        owners.append(owner)
    if want_lse and lse is None:
        lse = kept.new_lse(q)
        args.lse, _, owner = _tensor.read(lse, "lse")
        owners.append(owner)
    if kv_len is None and page_indptr is None:
        args.kv_len_all = kept.capacity if kv_len_all is None else kv_len_all
    for end in kept.ends:
        _check_ends(args, *end)
    args.score_scale, args.out_scale = score_scale, out_scale
    if state.explaining:
        state.explanation = kept.plan.explain(args)
    else:
        _run(kept, q, workspace, stream)
    return out, lse


def _check_ends(args, field, name, last, limit, exact):
    """First and last entry of a host table against the tensor that it divides."""
    address = getattr(args, field)
    first, end = (ctypes.c_int32.from_address(address + 4 * i).value for i in (0, last))
    if first != 0:
        raise errors.InvalidArgument(f"{name}[0] is {first}: it must be 0", name)
    if end > limit or (exact and end != limit):
        raise errors.InvalidArgument(
            f"{name}[{last}] is {end}: it must be {limit}, the "
            f"{'tokens of q' if exact else 'page ids that there are'}" + ("" if exact else
            ", or less"), name)


def _run(kept, q, workspace, stream):
    # A host backend has no stream.
    stream = _stream_number(stream, q) if kept.device[0] == _abi.DEVICE_CUDA else None
    if workspace is not None:
        address, size = _memory_of(workspace, kept.device)
    else:
        space = kept.workspace or _plan.device_workspace(kept.plan, q, stream)
        address, size = space.address, space.size
    status = library.deuce_decode_run(kept.plan.handle, kept.reference, address, size, stream)
    if status:
        raise_status(status, kept.args, kept.plan.config)


def _stream_number(stream, q):
    if stream is None:
        if _tensor.kind_of(q) != "torch":
            return None
        import torch  # loaded already: q is a torch tensor
        stream = torch.cuda.current_stream(q.device)
    return getattr(stream, "cuda_stream", stream)


def _memory_of(workspace, device):
    """(address, bytes) of the aligned part of a caller's workspace."""
    address, key, _ = _tensor.read(workspace, "workspace")
    layout = _tensor.describe(workspace, key, "workspace")
    if not _tensor.same_device(layout.device, device):
        raise errors.InvalidArgument("workspace is on another device than the query", "workspace")
    if not layout.contiguous or not layout.writable or layout.size_bytes is None:
        raise errors.InvalidArgument(
            "workspace must be contiguous, writable and of a numeric dtype", "workspace")
    skipped = -address % _plan.WORKSPACE_ALIGNMENT
    return address + skipped, max(layout.size_bytes - skipped, 0)
