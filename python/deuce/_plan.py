# SPDX-License-Identifier: Apache-2.0
"""Plans by configuration, and the memory they work in.

Used by every entry point. Must hold: one plan per configuration in the process, whatever thread
asks; a workspace is used by one thread and one stream only, so two runs that overlap in time never
share one.
"""
import ctypes
import json
import os
import threading

from . import errors
from ._library import library, raise_status

WORKSPACE_ALIGNMENT = 256


class Plan:
    """An immutable deuce_decode_plan. Safe to use from several threads at once."""

    def __init__(self, config):
        self.config = config
        self.handle = ctypes.c_void_p()
        sizes = ctypes.c_size_t(), ctypes.c_size_t()
        status = library.deuce_decode_plan_create(config, ctypes.byref(self.handle))
        status = status or library.deuce_decode_workspace_size(config, *map(ctypes.byref, sizes))
        if status:
            raise_status(status, config)
        self.workspace_bytes, self.control_bytes = (size.value for size in sizes)

    def __del__(self, destroy=library.deuce_decode_plan_destroy):
        if self.handle:
            destroy(self.handle)
            self.handle = None

    def explain(self, args=None):
        """What this plan would do, as a dict; with args also for that call."""
        size = ctypes.c_size_t(0)
        pointer = None if args is None else ctypes.byref(args)
        for _ in range(2):
            text = ctypes.create_string_buffer(size.value) if size.value else None
            status = library.deuce_decode_explain(self.handle, pointer, text, ctypes.byref(size))
            if status:
                raise_status(status, self.config, *([] if args is None else [args]))
        return json.loads(text.value)


class _Cache:
    """All plans of the process, and a generation that thread-local state compares with."""

    def __init__(self):
        self.lock = threading.Lock()
        self.plans = {}
        self.generation = 0


_cache = _Cache()
_of_parents = []  # plans of the processes that this one was forked from; they are not ours to end


def _begin_again():
    """In a child of fork(): the lock may be held by a thread that is not here, and the threads of
    the parent's plans are not either."""
    _cache.lock = threading.Lock()
    _of_parents.append(_cache.plans)
    _cache.plans = {}
    _cache.generation += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)


def plan_for(config):
    """The plan of this configuration, made on first use."""
    key = bytes(config)
    plan = _cache.plans.get(key)
    if plan is None:
        made = Plan(config)  # outside the lock: creation may take milliseconds on a GPU
        with _cache.lock:
            plan = _cache.plans.setdefault(key, made)
    return plan


def clear_plans():
    """Forget every cached plan and every workspace that Deuce allocated.

    Memory is returned as soon as no call uses it. A CUDA graph that captured a call still needs
    both: clear only when such graphs are gone. Thread-safe.
    """
    with _cache.lock:
        _cache.plans.clear()
        _cache.generation += 1


class _ThreadState(threading.local):
    """What one thread has prepared: kept calls by key, workspaces by place and stream."""

    generation = -1
    explaining, explanation = False, None  # set by explain()

    def current(self):
        """This state, emptied if clear_plans() has run since it was last used."""
        if self.generation != _cache.generation:
            self.generation = _cache.generation
            self.calls, self.workspaces = {}, {}
        return self


thread_state = _ThreadState()


class Workspace:
    """Memory for runs, whose control part is zero at rest (DEUCE_FLAG_WORKSPACE_KEPT)."""

    __slots__ = ("address", "size", "_owner")

    def __init__(self, address, size, owner):
        self.address, self.size, self._owner = address, size, owner


def host_workspace(plan):
    """This thread's host workspace for a plan."""
    # One per size of the control part: behind a shorter one lie partial results of other plans.
    spaces, key = thread_state.current().workspaces, plan.control_bytes
    space = spaces.get(key)
    if space is None or space.size < plan.workspace_bytes:
        memory = (ctypes.c_char * (plan.workspace_bytes + WORKSPACE_ALIGNMENT))()  # zeroed
        base = ctypes.addressof(memory)
        space = Workspace(base + -base % WORKSPACE_ALIGNMENT, plan.workspace_bytes, memory)
        spaces[key] = space
    return space


def device_workspace(plan, query, stream):
    """This thread's workspace for a plan on the device of a torch tensor, for one stream."""
    if plan.workspace_bytes == 0:
        return Workspace(None, 0, None)
    if not hasattr(query, "new_empty"):
        raise errors.InvalidArgument(
            "workspace is required: device memory cannot be allocated for a "
            f"{type(query).__name__}; pass a tensor of {plan.workspace_bytes} bytes on its device",
            "workspace")
    spaces = thread_state.current().workspaces
    key = (plan.control_bytes, query.device, stream)
    space = spaces.get(key)
    if space is None or space.size < plan.workspace_bytes:
        import torch  # loaded already: the query is a torch tensor
        memory = torch.empty(plan.workspace_bytes + WORKSPACE_ALIGNMENT, dtype=torch.uint8,
                             device=query.device)
        base = memory.data_ptr()
        address = base + -base % WORKSPACE_ALIGNMENT
        status = library.deuce_decode_workspace_init(plan.config, address, plan.workspace_bytes,
                                                     stream)
        if status:
            raise_status(status, plan.config)
        # A replaced workspace stays alive: a captured graph or a running kernel may hold it.
        space = spaces[key] = Workspace(address, plan.workspace_bytes, (memory, space))
    return space
