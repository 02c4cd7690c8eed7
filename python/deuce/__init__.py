# SPDX-License-Identifier: Apache-2.0
"""Deuce: attention of newly decoded tokens against a long KV cache, on a CPU or a GPU.

The three entry points carry the names and the meaning that callers know: flash_attn_with_kvcache
(FlashAttention), BatchDecodeWithPagedKVCacheWrapper (FlashInfer) and
trtllm_batch_decode_with_kv_cache (TensorRT-LLM). Tensors of torch, NumPy and of anything that
speaks DLPack or the buffer protocol are read in place. No framework is imported here.
"""
from ._info import Shape, backends, check, explain, shapes
from ._library import get_cmake_dir, get_include
from ._library import version as __version__
from ._plan import clear_plans
from ._torch_ops import register_torch_ops
from .errors import (DeviceFault, Error, Hazard, InvalidArgument, NoDevice, RuntimeFailure,
                     Unsupported, VersionMismatch, WorkspaceTooSmall)
from .flash_attn import flash_attn_varlen_func, flash_attn_with_kvcache, get_scheduler_metadata
from .flashinfer import BatchDecodeWithPagedKVCacheWrapper
from .flashinfer_single import single_decode_with_kv_cache
from .trtllm import trtllm_batch_decode_with_kv_cache

__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper", "DeviceFault", "Error", "Hazard", "InvalidArgument",
    "NoDevice", "RuntimeFailure", "Shape", "Unsupported", "VersionMismatch", "WorkspaceTooSmall",
    "__version__", "backends", "check", "clear_plans", "explain", "flash_attn_varlen_func",
    "flash_attn_with_kvcache", "get_cmake_dir", "get_include", "get_scheduler_metadata",
    "register_torch_ops", "shapes", "single_decode_with_kv_cache",
    "trtllm_batch_decode_with_kv_cache",
]
