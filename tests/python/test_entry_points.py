# SPDX-License-Identifier: Apache-2.0
"""Each entry point against attention by definition, on every host backend in the library."""
import math
import unittest

import deuce
import support
from support import HOST_BACKENDS, attend, np

LOG2_E = math.log2(math.e)


def setUpModule():
    support.needs_numpy()


class Problem:
    """Ragged batch with GQA: q (batch, tokens, 6, 64), K and V (batch, slots, 2, 64)."""

    lengths = (70, 1, 33)

    def __init__(self, tokens=1, seed=1):
        self.rng = np.random.default_rng(seed)
        batch, slots = len(self.lengths), max(self.lengths)
        self.q = self.rng.standard_normal((batch, tokens, 6, 64)).astype(np.float32)
        self.k, self.v = (self.rng.standard_normal((batch, slots, 2, 64)).astype(np.float32)
                          for _ in range(2))
        for b, length in enumerate(self.lengths):
            self.k[b, length:], self.v[b, length:] = np.nan, np.nan
        self.kv_len = np.array(self.lengths, np.int32)

    def expected(self, **options):
        """(out (batch, tokens, heads, d), lse (batch, tokens, heads))."""
        rows = [attend(self.q[b], self.k[b, :n], self.v[b, :n], **options)
                for b, n in enumerate(self.lengths)]
        return np.stack([out for out, _ in rows]), np.stack([lse for _, lse in rows])


class FlashAttnWithKvcache(support.Case):

    def test_contiguous_cache_matches_attention_by_definition(self):
        for backend in HOST_BACKENDS:
            for tokens, options in ((1, {}), (3, dict(causal=True)), (2, dict(left=5, right=0)),
                                    (3, dict(left=9, right=1)), (2, dict(softcap=2.0, scale=0.3))):
                with self.subTest(backend=backend, tokens=tokens, **options):
                    problem = Problem(tokens)
                    out, lse = deuce.flash_attn_with_kvcache(
                        problem.q, problem.k, problem.v, cache_seqlens=problem.kv_len,
                        causal=options.get("causal", False), softcap=options.get("softcap", 0.0),
                        softmax_scale=options.get("scale"),
                        window_size=(options.get("left", -1), options.get("right", -1)),
                        return_softmax_lse=True, backend=backend)
                    wanted, wanted_lse = problem.expected(**options)
                    self.assertClose(out, wanted, what="out")
                    self.assertClose(lse, wanted_lse.transpose(0, 2, 1), what="lse")

    def test_pages_in_both_orders_match_the_contiguous_cache(self):
        problem = Problem(2)
        wanted, _ = problem.expected(causal=True)
        for backend in HOST_BACKENDS:
            for page in (1, 8, 24):
                *caches, table = support.paged(problem.rng, problem.k, problem.v, problem.lengths,
                                               page)
                for layout in ("NHD", "HND"):
                    if layout == "HND":
                        caches = [cache.transpose(0, 2, 1, 3).copy() for cache in caches]
                    with self.subTest(backend=backend, page=page, layout=layout):
                        out = deuce.flash_attn_with_kvcache(
                            problem.q, *caches, cache_seqlens=problem.kv_len, block_table=table,
                            causal=True, kv_layout=layout, backend=backend)
                        self.assertClose(out, wanted)

    def test_packed_query_equals_padded_query(self):
        problem = Problem(2)
        wanted, wanted_lse = problem.expected(causal=True)
        for backend in HOST_BACKENDS:
            out, lse = deuce.flash_attn_with_kvcache(
                problem.q.reshape(-1, 6, 64), problem.k, problem.v, cache_seqlens=problem.kv_len,
                cu_seqlens_q=np.array([0, 2, 4, 6], np.int32), max_seqlen_q=2, causal=True,
                return_softmax_lse=True, backend=backend)
            self.assertClose(out, wanted.reshape(-1, 6, 64))
            self.assertClose(lse, wanted_lse.reshape(-1, 6).T)

    def test_ragged_query_lengths(self):
        problem = Problem(3)
        counts, offsets = (3, 0, 2), np.array([0, 3, 3, 5], np.int32)
        packed = np.concatenate([problem.q[b, :n] for b, n in enumerate(counts)])
        wanted = np.concatenate([attend(problem.q[b, :n], problem.k[b, :size], problem.v[b, :size],
                                        causal=True)[0]
                                 for b, (n, size) in enumerate(zip(counts, problem.lengths))])
        for backend in HOST_BACKENDS:
            out = deuce.flash_attn_with_kvcache(
                packed, problem.k, problem.v, cache_seqlens=problem.kv_len, cu_seqlens_q=offsets,
                max_seqlen_q=3, causal=True, backend=backend)
            self.assertClose(out, wanted)

    def test_one_length_for_all_and_none_for_the_whole_capacity(self):
        problem = Problem()
        problem.k, problem.v = np.nan_to_num(problem.k), np.nan_to_num(problem.v)
        for backend in HOST_BACKENDS:
            for given, n in ((17, 17), (np.int64(9), 9), (None, 70), (0, 0)):
                out = deuce.flash_attn_with_kvcache(problem.q, problem.k, problem.v,
                                                    cache_seqlens=given, backend=backend)
                wanted = np.stack([attend(problem.q[b], problem.k[b, :n], problem.v[b, :n])[0]
                                   for b in range(3)])
                self.assertClose(out, wanted)

    def test_cache_rows_and_left_padding(self):
        problem = Problem()
        rows, starts = np.array([2, 0, 2], np.int32), np.array([4, 60, 32], np.int32)
        lengths = np.array([33, 70, 33], np.int32)
        wanted = np.stack([attend(problem.q[b], problem.k[rows[b], :lengths[b]],
                                  problem.v[rows[b], :lengths[b]], start=starts[b])[0]
                           for b in range(3)])
        for backend in HOST_BACKENDS:
            out = deuce.flash_attn_with_kvcache(
                problem.q, problem.k, problem.v, cache_seqlens=lengths, cache_batch_idx=rows,
                cache_leftpad=starts, backend=backend)
            self.assertClose(out, wanted)

    def test_sinks_in_each_dtype_and_under_each_name(self):
        problem = Problem()
        logits = np.linspace(-2, 3, 6).astype(np.float32)
        wanted, wanted_lse = problem.expected(sink=logits.astype(np.float16))
        for backend in HOST_BACKENDS:
            for name in ("sinks", "s_aux", "learnable_sink"):
                out, lse = deuce.flash_attn_with_kvcache(
                    problem.q, problem.k, problem.v, cache_seqlens=problem.kv_len,
                    return_softmax_lse=True, backend=backend,
                    **{name: logits.astype(np.float16)})
                self.assertClose(out, wanted)
                self.assertClose(lse, wanted_lse.transpose(0, 2, 1))

    def test_given_outputs_are_written_whatever_their_strides(self):
        problem = Problem(2)
        wanted, wanted_lse = problem.expected()
        for backend in HOST_BACKENDS:
            room = np.full((3, 6, 2, 80), 7, np.float32)
            out, lse = room.transpose(0, 2, 1, 3)[..., :64], np.zeros((3, 2, 6), np.float32)
            answer = deuce.flash_attn_with_kvcache(
                problem.q, problem.k, problem.v, cache_seqlens=problem.kv_len, out=out,
                softmax_lse=lse.transpose(0, 2, 1), backend=backend)
            self.assertIs(answer, out)
            self.assertClose(out, wanted)
            self.assertClose(lse, wanted_lse)
            self.assertTrue((room[..., 64:] == 7).all(), "padding was written")

    def test_batch_of_zero_requests(self):
        for backend in HOST_BACKENDS:
            out, lse = deuce.flash_attn_with_kvcache(
                np.zeros((0, 1, 6, 64), np.float32), np.zeros((0, 4, 2, 64), np.float32),
                np.zeros((0, 4, 2, 64), np.float32), cache_seqlens=np.zeros(0, np.int32),
                return_softmax_lse=True, backend=backend)
            self.assertEqual((out.shape, lse.shape), ((0, 1, 6, 64), (0, 6, 1)))

    def test_different_head_dimensions_of_k_and_v(self):
        rng = np.random.default_rng(3)
        q, k = (rng.standard_normal(shape).astype(np.float32)
                for shape in ((1, 1, 4, 64), (1, 20, 2, 64)))
        v = rng.standard_normal((1, 20, 2, 32)).astype(np.float32)
        out = deuce.flash_attn_with_kvcache(q, k, v, backend="reference")
        self.assertClose(out[0], attend(q[0], k[0], v[0])[0])


class FlashAttnVarlenFunc(support.Case):

    def test_packed_keys_with_offsets(self):
        problem = Problem()
        k, v = (np.concatenate([cache[b, :n] for b, n in enumerate(problem.lengths)])
                for cache in (problem.k, problem.v))
        offsets = np.concatenate([[0], np.cumsum(problem.lengths)]).astype(np.int32)
        wanted, wanted_lse = problem.expected()
        for backend in HOST_BACKENDS:
            out, lse = deuce.flash_attn_varlen_func(
                problem.q[:, 0], k, v, cu_seqlens_q=np.arange(4, dtype=np.int32), max_seqlen_q=1,
                cu_seqlens_k=offsets, max_seqlen_k=70, return_softmax_lse=True, backend=backend)
            self.assertClose(out, wanted[:, 0])
            self.assertClose(lse, wanted_lse[:, 0].T)

    def test_pages_with_used_lengths_as_vllm_calls_it(self):
        problem = Problem(2)
        k, v, table = support.paged(problem.rng, problem.k, problem.v, problem.lengths, 16)
        wanted, _ = problem.expected(causal=True)
        for backend in HOST_BACKENDS:
            out = np.empty((6, 6, 64), np.float32)
            answer = deuce.flash_attn_varlen_func(
                q=problem.q.reshape(-1, 6, 64), k=k, v=v, out=out,
                cu_seqlens_q=np.array([0, 2, 4, 6], np.int32), max_seqlen_q=2,
                seqused_k=problem.kv_len, max_seqlen_k=70, softmax_scale=1 / 8, causal=True,
                alibi_slopes=None, window_size=[-1, -1], block_table=table, softcap=0,
                scheduler_metadata=deuce.get_scheduler_metadata(3, 2, 70, 6, 2, 64, problem.kv_len),
                num_splits=0, s_aux=None, backend=backend)
            self.assertIs(answer, out)
            self.assertClose(out, wanted.reshape(-1, 6, 64))


class FlashInferWrapper(support.Case):

    def pages(self, problem, page):
        """FlashInfer's table: (k, v, indptr, indices, last_page_len)."""
        k, v, table = support.paged(problem.rng, problem.k, problem.v, problem.lengths, page)
        counts = [-(-n // page) for n in problem.lengths]
        indices = np.concatenate([table[b, :n] for b, n in enumerate(counts)])
        last = np.array([(n - 1) % page + 1 for n in problem.lengths], np.int32)
        return k, v, np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), indices, last

    def test_plan_and_run_match_attention_by_definition(self):
        problem = Problem(2)
        k, v, *tables = self.pages(problem, 8)
        wanted, wanted_lse = problem.expected(causal=True)
        q = problem.q.reshape(-1, 6, 64)
        for backend in HOST_BACKENDS:
            wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(None, backend=backend)
            wrapper.plan(*tables, 6, 2, 64, 8, q_data_type=np.float32, q_len_per_req=2)
            out, lse = wrapper.run_return_lse(q, (k, v))
            self.assertClose(out, wanted.reshape(-1, 6, 64))
            self.assertClose(lse, wanted_lse.reshape(-1, 6) * LOG2_E)
            both = np.stack([k, v], axis=1)
            self.assertTrue((wrapper.run(q, both) == out).all())
            wrapper.plan(*tables, 6, 2, 64, 8, q_data_type="float32", q_len_per_req=2,
                         window_right=-1)
            self.assertClose(wrapper.run(q, (k, v)), problem.expected()[0].reshape(-1, 6, 64))

    def test_graph_buffers_are_filled_by_plan_and_read_by_run(self):
        problem = Problem()
        k, v, indptr, indices, last = self.pages(problem, 8)
        buffers = np.zeros(4, np.int32), np.full(40, -1, np.int32), np.zeros(3, np.int32)
        for backend in HOST_BACKENDS:
            wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(
                None, "NHD", True, False, *buffers, backend=backend)
            self.assertTrue(wrapper.is_cuda_graph_enabled)
            wrapper.plan(indptr, indices, last, 6, 2, 64, 8, q_data_type="float32")
            self.assertEqual(list(buffers[1][:len(indices)]), list(indices))
            needed, _ = wrapper.workspace_size()
            wrapper.reset_workspace_buffer(np.full(needed, 0xFF, np.uint8))
            self.assertClose(wrapper.run(problem.q[:, 0], (k, v)), problem.expected()[0][:, 0])
            with self.assertRaises(deuce.InvalidArgument):
                wrapper.plan(indptr[:-1], indices, last[:-1], 6, 2, 64, 8, q_data_type="float32")

    def test_block_tables_and_lengths_replace_the_indices(self):
        problem = Problem()
        k, v, table = support.paged(problem.rng, problem.k, problem.v, problem.lengths, 8)
        for backend in HOST_BACKENDS:
            wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(None, backend=backend)
            wrapper.plan(np.zeros(4, np.int32), np.zeros(0, np.int32), np.zeros(3, np.int32), 6, 2,
                         64, 8, q_data_type="float32", block_tables=table, seq_lens=problem.kv_len)
            self.assertClose(wrapper.run(problem.q[:, 0], (k, v)), problem.expected()[0][:, 0])

    def test_single_decode_in_both_orders(self):
        problem = Problem()
        q, k, v = problem.q[0, 0], problem.k[0], problem.v[0]
        wanted, wanted_lse = attend(q[None], k, v, softcap=3.0, left=20)
        for backend in HOST_BACKENDS:
            for layout, keys, values in (("NHD", k, v),
                                         ("HND", k.swapaxes(0, 1), v.swapaxes(0, 1))):
                out, lse = deuce.single_decode_with_kv_cache(
                    q, keys, values, layout, window_left=20, logits_soft_cap=3.0, return_lse=True,
                    backend=backend)
                self.assertClose(out, wanted[0])
                self.assertClose(lse, wanted_lse[0] * LOG2_E)


class TrtllmShape(support.Case):

    def test_matches_attention_by_definition(self):
        problem = Problem(2)
        k, v, table = support.paged(problem.rng, problem.k, problem.v, problem.lengths, 16)
        k, v = (cache.transpose(0, 2, 1, 3).copy() for cache in (k, v))
        q = problem.q.reshape(-1, 6, 64)
        logits = np.linspace(-1, 1, 6).astype(np.float32)
        for options, keywords in (({}, {}), (dict(left=11), dict(window_left=11)),
                                  (dict(sink=logits), dict(sinks=[logits]))):
            wanted, wanted_lse = problem.expected(causal=True, scale=0.25, **options)
            for backend in HOST_BACKENDS:
                for packing in (dict(q_len_per_req=2), dict(
                        cum_seq_lens_q=np.array([0, 2, 4, 6], np.int32), max_q_len=2)):
                    out, lse = deuce.trtllm_batch_decode_with_kv_cache(
                        q, (k, v), None, table, problem.kv_len, 70, bmm1_scale=0.25, bmm2_scale=0.5,
                        return_lse=True, backend=backend, **keywords, **packing)
                    self.assertClose(out, wanted.reshape(-1, 6, 64) / 2)
                    self.assertClose(lse, wanted_lse.reshape(-1, 6) * LOG2_E)

    def test_a_given_lse_is_filled_without_asking_for_it_back(self):
        problem = Problem()
        k, v, table = support.paged(problem.rng, problem.k, problem.v, problem.lengths, 16)
        for backend in HOST_BACKENDS:
            lse = np.zeros((3, 6), np.float32)
            deuce.trtllm_batch_decode_with_kv_cache(
                problem.q[:, 0], (k, v), None, table, problem.kv_len, 70, 0.125, kv_layout="NHD",
                lse=lse, backend=backend)
            self.assertClose(lse, problem.expected()[1][:, 0] * LOG2_E)


if __name__ == "__main__":
    unittest.main()
