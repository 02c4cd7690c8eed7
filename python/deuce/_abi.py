# SPDX-License-Identifier: Apache-2.0
"""deuce.h in ctypes: the structs and the numbers behind the names.

Used by the loader and by the plans. Must hold: names, order and types equal those of the header;
tests/python/test_abi.py compares sizes and offsets with what a C compiler makes of it.
"""
import ctypes

ABI_VERSION = 1

BACKENDS = {"auto": 0, "cpu": 1, "hopper": 2, "blackwell": 3, "emulator": 4, "reference": 5}
DTYPES = {"float32": 1, "float16": 2, "bfloat16": 3, "float8_e4m3fn": 4, "float8_e5m2": 5}
FLAG_TRACE, FLAG_WORKSPACE_KEPT, FLAG_PDL = 1, 2, 4
DEVICE_CPU, DEVICE_CUDA = 1, 2  # DLPack's numbers

_i32, _u32, _i64, _u64, _f32 = (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64,
                                ctypes.c_float)
_pointer = ctypes.c_void_p


class Config(ctypes.Structure):
    """deuce_decode_config: what does not change from step to step."""

    _fields_ = [
        ("struct_size", _u32), ("flags", _u32),
        ("backend", _i32), ("emulated_backend", _i32),
        ("device_type", _i32), ("device_id", _i32),
        ("num_q_heads", _i32), ("num_kv_heads", _i32),
        ("head_dim_qk", _i32), ("head_dim_v", _i32),
        ("q_dtype", _i32), ("kv_dtype", _i32), ("out_dtype", _i32), ("sink_dtype", _i32),
        ("page_size", _i32),
        ("max_batch", _i32), ("max_q_len", _i32),
        ("causal", _i32),
        ("max_kv_len", _i64),
        ("window_left", _i32), ("window_right", _i32),
        ("softmax_scale", _f32), ("softcap", _f32),
        ("lse_base", _i32),
        ("num_splits", _i32), ("split_kv_len", _i32),
        ("score_slots", _i32), ("sm_margin", _i32), ("row_replicas", _i32),
        ("emulator_seed", _u64),
    ]

    def __init__(self, **fields):
        # The same starting values as deuce_decode_config_init.
        super().__init__(struct_size=ctypes.sizeof(type(self)), device_id=-1, window_left=-1,
                         window_right=-1)
        for name, value in fields.items():
            setattr(self, name, value)


class Args(ctypes.Structure):
    """deuce_decode_args: pointers, strides in elements, sizes of one step."""

    _fields_ = [
        ("struct_size", _u32), ("tag", _u32),
        ("batch", _i32), ("q_len", _i32),
        ("q", _pointer), ("k", _pointer), ("v", _pointer), ("out", _pointer), ("lse", _pointer),
        ("q_stride", _i64 * 3), ("out_stride", _i64 * 3), ("lse_stride", _i64 * 3),
        ("k_stride", _i64 * 3), ("v_stride", _i64 * 3),
        ("cu_q_len", _pointer), ("kv_len", _pointer), ("kv_start", _pointer),
        ("kv_len_all", _i64), ("cache_slots", _i64),
        ("cache_row", _pointer), ("block_table", _pointer),
        ("block_table_stride", _i64),
        ("block_table_columns", _i32), ("num_pages", _i32),
        ("page_indptr", _pointer), ("page_indices", _pointer), ("last_page_len", _pointer),
        ("sink", _pointer),
        ("q_descale", _pointer), ("k_descale", _pointer), ("v_descale", _pointer),
        ("q_descale_stride", _i64 * 2), ("k_descale_stride", _i64 * 2),
        ("v_descale_stride", _i64 * 2),
        ("k_token_scale", _pointer), ("v_token_scale", _pointer),
        ("k_token_scale_stride", _i64 * 3), ("v_token_scale_stride", _i64 * 3),
        ("score_scale", _f32), ("out_scale", _f32),
        ("tree_mask", _pointer), ("tree_mask_stride", _i64),
        ("trace", _pointer), ("trace_bytes", ctypes.c_size_t),
    ]

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(type(self)))


class Fault(ctypes.Structure):
    """deuce_fault: the first inconsistency a kernel met in device data."""

    _fields_ = [
        ("struct_size", _u32), ("code", _i32), ("request", _i32), ("column", _i32),
        ("value", _i64), ("lowest", _i64), ("highest", _i64),
        ("tag", _u32), ("reserved", _u32),
    ]

    def __init__(self):
        super().__init__(struct_size=ctypes.sizeof(type(self)))


# Every function of the header: name, result, arguments.
_status, _stream, _size = _i32, _pointer, ctypes.c_size_t
_config = ctypes.POINTER(Config)
PROTOTYPES = {
    "deuce_decode_check": (_status, [_config]),
    "deuce_decode_workspace_size": (_status, [_config, ctypes.POINTER(_size),
                                              ctypes.POINTER(_size)]),
    "deuce_decode_workspace_init": (_status, [_config, _pointer, _size, _stream]),
    "deuce_decode_plan_create": (_status, [_config, ctypes.POINTER(_pointer)]),
    "deuce_decode_run": (_status, [_pointer, ctypes.POINTER(Args), _pointer, _size, _stream]),
    "deuce_decode_explain": (_status, [_pointer, ctypes.POINTER(Args), ctypes.c_char_p,
                                       ctypes.POINTER(_size)]),
    "deuce_decode_fault": (_status, [_pointer, ctypes.POINTER(Fault)]),
    "deuce_decode_plan_destroy": (None, [_pointer]),
    "deuce_status_string": (ctypes.c_char_p, [_status]),
    "deuce_last_error": (ctypes.c_char_p, []),
    "deuce_last_error_field": (ctypes.c_char_p, []),
    "deuce_abi_version": (_u32, []),
    "deuce_version": (ctypes.c_char_p, []),
}
