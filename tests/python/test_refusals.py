# SPDX-License-Identifier: Apache-2.0
"""Bad input gives one exception of the right class that names the argument, and writes nothing.

What Python sees first is refused under the Python name, what only C can see under C's; C's sentence
reaches the caller unchanged.
"""
import ctypes
import unittest

import deuce
import support
from deuce import _abi, _library
from support import HOST_BACKENDS, np

INVALID, UNSUPPORTED = deuce.InvalidArgument, deuce.Unsupported


def setUpModule():
    support.needs_numpy()


def ints(*numbers):
    return np.array(numbers, np.int32)


class Refusals(support.Case):

    def setUp(self):
        self.q = np.ones((2, 1, 4, 16), np.float32)
        self.k = np.ones((2, 20, 2, 16), np.float32)
        self.v = np.ones((2, 20, 2, 16), np.float32)
        self.pages = np.ones((3, 8, 2, 16), np.float32)

    def refuse(self, kind, field, words="", **changes):
        """The call with these changes is refused on every backend, and no output is written."""
        for backend in HOST_BACKENDS:
            out, lse = np.full((2, 1, 4, 16), 7, np.float32), np.full((2, 4, 1), 7, np.float32)
            arguments = dict(q=self.q, k_cache=self.k, v_cache=self.v, out=out, softmax_lse=lse,
                             backend=backend)
            arguments.update(changes)
            with self.subTest(field=field, words=words, backend=backend):
                sentence = self.assertRefused(kind, field, deuce.flash_attn_with_kvcache,
                                              **arguments)
                self.assertIn(words, sentence)
                self.assertTrue((out == 7).all() and (lse == 7).all(), "something was written")

    def test_tables_that_reach_beyond_their_tensors(self):
        q = np.ones((2, 4, 16), np.float32)
        for ends in ((0, 1, 3), (0, 1, 1000), (0, 1, 1), (100, 101, 102)):
            with self.subTest(ends=ends):
                self.assertRefused(INVALID, "cu_seqlens_q", deuce.flash_attn_with_kvcache, q, self.k,
                                   self.v, cu_seqlens_q=ints(*ends), max_seqlen_q=4)

    def test_tables_without_an_entry(self):
        q, rows = np.ones((2, 4, 16), np.float32), np.ones((40, 2, 16), np.float32)
        pages = (self.pages, self.pages)
        for nothing in (ints(), []):
            with self.subTest(nothing=nothing):
                self.assertRefused(INVALID, "cu_seqlens_q", deuce.flash_attn_with_kvcache, q, self.k,
                                   self.v, cu_seqlens_q=nothing, max_seqlen_q=1)
                self.assertRefused(INVALID, "cu_seqlens_k", deuce.flash_attn_varlen_func, q, rows,
                                   rows, cu_seqlens_q=ints(0, 1, 2), max_seqlen_q=1,
                                   cu_seqlens_k=nothing, max_seqlen_k=40)
                self.assertRefused(INVALID, "cum_seq_lens_q",
                                   deuce.trtllm_batch_decode_with_kv_cache, q, pages, None,
                                   ints(0, 1).reshape(2, 1), ints(3, 3), 8, kv_layout="NHD",
                                   cum_seq_lens_q=nothing, max_q_len=1)
                wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(None)
                self.assertRefused(INVALID, "indptr", wrapper.plan, nothing, ints(0), ints(1), 4, 2,
                                   16, 8)

    def test_truth_values_are_no_numbers_even_after_the_number_was_taken(self):
        for name, number in (("score_slots", 1), ("num_splits", 1), ("softcap", 1.0),
                             ("cache_seqlens", 1), ("softmax_scale", 1)):
            for backend in HOST_BACKENDS:
                deuce.flash_attn_with_kvcache(self.q, self.k, self.v, backend=backend,
                                              **{name: number})
            for truth in (True, np.True_):
                self.refuse(INVALID, name, "needed", **{name: truth})
        self.assertRefused(INVALID, "score_slots", deuce.check, score_slots=True)

    def test_numbers_that_are_none_in_fp32(self):
        for name in ("softmax_scale", "softcap"):
            self.refuse(INVALID, name, "fp32", **{name: 1e-60})
            self.refuse(INVALID, name, "a number is needed", **{name: "1"})

    def test_shapes(self):
        big = np.ones((2, 20, 3, 16), np.float32)
        self.refuse(INVALID, "q", "4 axes (batch, tokens, heads, head dim)", q=self.q[0])
        self.refuse(INVALID, "k_cache", "4 axes", k_cache=self.k[..., None])
        self.refuse(INVALID, "q", "must be equal", q=self.q[..., :8])
        self.refuse(INVALID, "v_cache", "as many slots as k_cache", v_cache=self.v[:, :19])
        self.refuse(INVALID, "v_cache", "as many heads", v_cache=big)
        self.refuse(INVALID, "num_q_heads", "multiple of num_kv_heads", k_cache=big, v_cache=big)
        self.refuse(
            INVALID, "out", "(2, 1, 4, 16) is needed", out=np.ones((2, 1, 4, 8), np.float32))
        self.refuse(
            INVALID, "softmax_lse", "(2, 4, 1) is needed", softmax_lse=np.ones((2, 1, 4),
            np.float32))
        self.refuse(INVALID, "cache_seqlens", "(2,) is needed", cache_seqlens=ints(1, 2, 3))
        self.refuse(INVALID, "cache_batch_idx", "(2,) is needed", cache_batch_idx=ints(0))
        self.refuse(INVALID, "cache_leftpad", "(2,) is needed", cache_leftpad=ints(0))
        self.refuse(
            INVALID, "block_table", "(2, any) is needed", block_table=ints(0, 1, 2).reshape(1, 3))
        self.refuse(INVALID, "block_table", "2 axes", block_table=ints(0, 1))
        self.refuse(INVALID, "k_descale", "(2, 2) is needed", k_descale=np.ones((2, 4), np.float32))
        self.refuse(INVALID, "sinks", "(4,) is needed", sinks=np.ones(3, np.float32))
        self.refuse(INVALID, "head_dim_qk", k_cache=self.k[..., :0], q=self.q[..., :0])

    def test_dtypes(self):
        self.refuse(INVALID, "q", "float64", q=self.q.astype(np.float64))
        self.refuse(INVALID, "k_cache", "uint8", k_cache=self.k.astype(np.uint8))
        self.refuse(INVALID, "v_cache", "K and V have one dtype", v_cache=self.v.astype(np.float16))
        self.refuse(
            INVALID, "cache_seqlens", "int64: int32 is needed", cache_seqlens=np.array([1, 2]))
        self.refuse(INVALID, "block_table", "int32 is needed", block_table=np.ones((2, 2)))
        self.refuse(INVALID, "out", "int32", out=np.ones((2, 1, 4, 16), np.int32))
        self.refuse(INVALID, "softmax_lse", "float16", softmax_lse=np.ones((2, 4, 1), np.float16))
        self.refuse(INVALID, "sinks", "float64", sinks=np.ones(4))
        self.refuse(INVALID, "k_descale", "float32 is needed", k_descale=np.ones((2, 2)))
        self.refuse(INVALID, "q_dtype", "q is float32", q_dtype="bfloat16")
        self.refuse(INVALID, "q_dtype", "must be one of", q_dtype="int4")
        self.refuse(INVALID, "kv_dtype", "k_cache is uint16", k_cache=self.k.astype(np.uint16),
                    v_cache=self.v.astype(np.uint16), kv_dtype="float8_e5m2")
        self.refuse(INVALID, "k_descale", "only fp8", k_descale=np.ones((2, 2), np.float32))
        self.refuse(
            INVALID, "v_token_scale", "only fp8", v_token_scale=np.ones((2, 20, 2), np.float32))

    def test_strides(self):
        wide = np.ones((2, 20, 2, 32), np.float32)
        self.refuse(INVALID, "k_cache", "last dimension", k_cache=wide[..., ::2])
        self.refuse(INVALID, "q", "last dimension", q=np.ones((2, 1, 4, 32), np.float32)[..., ::2])
        self.refuse(INVALID, "cache_seqlens", "last dimension", cache_seqlens=ints(1, 2, 3, 4)[::2])
        self.refuse(INVALID, "sinks", "last dimension", sinks=np.ones(8, np.float32)[::2])

    def test_values(self):
        for name, value in (("softmax_scale", 0.0), ("softmax_scale", float("nan")),
                            ("softmax_scale", "one"), ("softcap", -1.0), ("softcap", float("nan")),
                            ("num_splits", 257), ("num_splits", -1), ("num_splits", 1.5),
                            ("split_kv_len", 64), ("score_slots", 4), ("sm_margin", 2**31),
                            ("kv_layout", "DHN"), ("backend", "gpu"), ("backend", "cpu:hopper"),
                            ("window_size", 5), ("window_size", (1, 2, 3))):
            self.refuse(INVALID, name, **{name: value})
        self.refuse(INVALID, "window_left", "-2", window_size=(-2, 0))
        self.refuse(INVALID, "window_right", "does not fit in 32 bits", window_size=(0, 2**31))
        self.refuse(INVALID, "split_kv_len", "give one of them", split_kv_len=128, num_splits=2)
        self.refuse(INVALID, "softmax_scale", softmax_scale=np.ones(2))
        self.refuse(INVALID, "softcap", softcap=np.ones(2))

    def test_lengths_tables_and_rows(self):
        for lengths in (ints(21, 1), ints(-1, 1)):
            self.refuse(INVALID, "kv_len", cache_seqlens=lengths)
        self.refuse(INVALID, "kv_len_all", "0 .. 20", cache_seqlens=21)
        self.refuse(INVALID, "kv_len_all", cache_seqlens=-1)
        self.refuse(INVALID, "cache_seqlens", "does not fit in 64 bits", cache_seqlens=2**63)
        self.refuse(INVALID, "kv_start", cache_leftpad=ints(5, 21), cache_seqlens=ints(20, 20))
        self.refuse(INVALID, "cache_row", cache_batch_idx=ints(0, 2))
        paged = dict(k_cache=self.pages, v_cache=self.pages)
        for table in (ints(0, 3, 1, 2), ints(0, 1, -1, 2)):
            self.refuse(
                INVALID, "block_table", block_table=table.reshape(2, 2), cache_seqlens=ints(16, 16),
                **paged)
        self.refuse(
            INVALID, "kv_len", block_table=ints(0, 1).reshape(2, 1), cache_seqlens=ints(9, 8),
            **paged)
        self.refuse(UNSUPPORTED, "cache_batch_idx", block_table=ints(0, 1).reshape(2, 1),
                    cache_batch_idx=ints(0, 1), **paged)
        self.refuse(INVALID, "num_pages", k_cache=self.k[:1], v_cache=self.v[:1])

    def test_bad_ids_where_no_key_is_needed_are_fine(self):
        for backend in HOST_BACKENDS:
            out = deuce.flash_attn_with_kvcache(
                self.q, self.pages, self.pages, cache_seqlens=ints(8, 0), backend=backend,
                block_table=ints(2, 999, -1, 1 << 30).reshape(2, 2))
            self.assertClose(out[0], np.ones((1, 4, 16)))
            self.assertClose(out[1], np.zeros((1, 4, 16)))

    def test_packed_queries(self):
        packed = dict(q=self.q[:, 0], out=None, softmax_lse=None)
        self.refuse(INVALID, "q", "3 axes", cu_seqlens_q=ints(0, 1, 2), max_seqlen_q=1)
        self.refuse(INVALID, "max_seqlen_q", "required", cu_seqlens_q=ints(0, 1, 2), **packed)
        self.refuse(INVALID, "max_seqlen_q", "q has 1 tokens", max_seqlen_q=2)
        for offsets in (ints(0, 2, 1), ints(0, 2, 2)):
            field = "cu_q_len" if offsets[-1] == 2 else "cu_seqlens_q"
            self.refuse(INVALID, field, cu_seqlens_q=offsets, max_seqlen_q=1, **packed)

    def test_varlen_packed_keys(self):
        call, q = deuce.flash_attn_varlen_func, self.q[:, 0]
        common = dict(cu_seqlens_q=ints(0, 1, 2), max_seqlen_q=1, backend="reference")
        packed = np.ones((30, 2, 16), np.float32)
        self.assertRefused(INVALID, "cu_seqlens_k", call, q, packed, packed, **common)
        self.assertRefused(
            INVALID, "k", call, q, self.k, self.v, cu_seqlens_k=ints(0, 1, 2), **common)
        self.assertRefused(
            UNSUPPORTED, "cu_seqlens_k", call, q, packed, packed, cu_seqlens_k=ints(0, 1, 2),
            seqused_k=ints(1, 1), **common)

    def test_backends_without_their_device_are_refused_by_name(self):
        for name, answer in deuce.backends().items():
            if name in ("hopper", "blackwell"):
                with self.assertRaises(deuce.InvalidArgument) as caught:
                    deuce.flash_attn_with_kvcache(self.q, self.k, self.v, backend=name)
                self.assertIn(f"backend {name} works on CUDA memory", str(caught.exception))
            if answer != "ready":
                with self.assertRaises((deuce.NoDevice, deuce.Unsupported)) as caught:
                    deuce.check(backend=name, num_q_heads=8, num_kv_heads=1, head_dim_qk=128,
                                head_dim_v=128, q_dtype="bfloat16", kv_dtype="bfloat16",
                                max_batch=1, max_q_len=1, max_kv_len=128)
                self.assertEqual(str(caught.exception), answer)

    def test_tensors_that_are_needed_may_not_be_none(self):
        for name in ("q", "k_cache", "v_cache"):
            self.refuse(INVALID, name, "is None", **{name: None})
        call = deuce.trtllm_batch_decode_with_kv_cache
        arguments = dict(query=self.q[:, 0], kv_cache=(self.pages, self.pages),
                         workspace_buffer=None, block_tables=ints(0, 1).reshape(2, 1),
                         seq_lens=ints(1, 1), max_seq_len=8)
        for name in ("query", "block_tables", "seq_lens"):
            self.assertRefused(INVALID, name, call, **{**arguments, name: None})

    def test_wrapper_before_plan_and_with_odd_caches(self):
        wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(None, backend="reference")
        self.assertRefused(INVALID, "plan", wrapper.run, self.q[:, 0], (self.pages, self.pages))
        self.assertRefused(INVALID, "plan", wrapper.workspace_size)
        wrapper.plan(ints(0, 1, 2), ints(0, 1), ints(8, 8), 4, 2, 16, 8, q_data_type="float32")
        run = wrapper.run
        self.assertRefused(INVALID, "paged_kv_cache", run, self.q[:, 0], self.pages)
        self.assertRefused(INVALID, "paged_kv_cache", run, self.q[:, 0], (self.pages,) * 3)
        self.assertRefused(UNSUPPORTED, "paged_kv_cache", run, self.q[:, 0], self.pages[:, None])
        self.assertRefused(UNSUPPORTED, "args", run, self.q[:, 0], (self.pages, self.pages), 1)
        self.assertRefused(
            INVALID, "q_scale", run, self.q[:, 0], (self.pages, self.pages), q_scale=2.0)
        self.assertRefused(INVALID, "v_scale", run, self.q[:, 0], (self.pages, self.pages),
                           v_scale=np.ones(1))
        self.assertRefused(
            UNSUPPORTED, "kv_data_type", wrapper.plan, ints(0, 1, 2), ints(0, 1), ints(8, 8), 4, 2,
            16, 8, kv_data_type="uint8")
        self.assertRefused(
            INVALID, "seq_lens", wrapper.plan, ints(0, 1, 2), ints(0, 1), ints(8, 8), 4, 2, 16, 8,
            block_tables=ints(0, 1).reshape(2, 1))

    def test_a_workspace_one_byte_short_names_both_sizes(self):
        for backend in HOST_BACKENDS:
            def call(workspace):
                return deuce.flash_attn_with_kvcache(self.q, self.k, self.v, workspace=workspace,
                                                     backend=backend)

            needed = deuce.explain(call, None)["workspace"]["bytes"]
            memory = np.zeros(needed + 256, np.uint8)
            start = -memory.ctypes.data % 256
            call(memory[start:start + needed])
            if needed:
                with self.assertRaises(deuce.WorkspaceTooSmall) as caught:
                    call(memory[start:start + needed - 1])
                self.assertIn(str(needed), str(caught.exception))
                self.assertIn(str(needed - 1), str(caught.exception))
            self.assertRefused(INVALID, "workspace", call, memory[::2])

    def test_exceptions_carry_status_field_and_value_and_the_sentence_of_c(self):
        with self.assertRaises(ValueError) as caught:
            deuce.flash_attn_with_kvcache(self.q, self.k, self.v, num_splits=257)
        error = caught.exception
        self.assertEqual((error.status, error.field, error.value), (1, "num_splits", 257))
        self.assertEqual(str(error), _library.library.deuce_last_error().decode())
        with self.assertRaises(NotImplementedError) as caught:
            deuce.flash_attn_with_kvcache(self.q, self.k, self.v, backend="reference",
                                          score_slots=2)
        self.assertEqual((caught.exception.status, caught.exception.value), (2, 2))
        self.assertTrue(issubclass(deuce.RuntimeFailure, RuntimeError))

    def test_check_and_explain_refuse_unknown_fields(self):
        with self.assertRaisesRegex(TypeError, "'heads' is not a field"):
            deuce.check(heads=3)
        with self.assertRaises(TypeError):
            deuce.check(struct_size=3)
        self.assertRefused(INVALID, "max_kv_len", deuce.check, max_kv_len=2**63)
        self.assertRefused(INVALID, "num_q_heads", deuce.check, num_q_heads="many")

    def test_a_config_longer_than_the_library_knows_is_a_version_mismatch(self):
        class Longer(_abi.Config):
            _fields_ = [("future", ctypes.c_uint32), ("more", ctypes.c_uint32)]
        config = Longer(num_q_heads=1, future=3)
        pointer = ctypes.cast(ctypes.byref(config), ctypes.POINTER(_abi.Config))
        status = _library.library.deuce_decode_check(pointer)
        with self.assertRaises(deuce.VersionMismatch):
            _library.raise_status(status, config)


if __name__ == "__main__":
    unittest.main()
