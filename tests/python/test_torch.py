# SPDX-License-Identifier: Apache-2.0
"""torch CPU tensors through every entry point, and the registered operators under torch.compile.

Skipped, and counted as such, where torch is not installed (scripts/install_packages --peers)."""
import os
import unittest

import deuce
import support
from support import HOST_BACKENDS, attend, np

try:
    import torch
except ImportError:
    torch = None


def setUpModule():
    support.needs_numpy()
    if torch is None:
        if os.environ.get("DEUCE_REQUIRE_TORCH"):
            raise AssertionError("DEUCE_REQUIRE_TORCH is set but torch cannot be imported")
        raise unittest.SkipTest("torch is not installed")
    deuce.register_torch_ops()


class Torch(support.Case):

    def setUp(self):
        torch.manual_seed(3)
        self.q = torch.randn(2, 2, 6, 64, dtype=torch.bfloat16)
        self.k, self.v = torch.randn(2, 2, 50, 2, 64, dtype=torch.bfloat16)
        self.lengths = torch.tensor([50, 17], dtype=torch.int32)
        rows = [attend(self.q[b].float(), self.k[b, :size].float(), self.v[b, :size].float(),
                       causal=True) for b, size in enumerate((50, 17))]
        self.wanted = np.stack([out for out, _ in rows])
        self.wanted_lse = np.stack([lse for _, lse in rows])
        self.table = torch.arange(100, dtype=torch.int32).flip(0).reshape(2, 50)

    def pages(self):
        """Pages of one token whose table is self.table."""
        order = self.table.flatten().long()
        pools = []
        for cache in (self.k, self.v):
            pool = torch.empty(100, 1, 2, 64, dtype=cache.dtype)
            pool[order, 0] = cache.reshape(100, 2, 64)
            pools.append(pool)
        return pools

    def test_bfloat16_tensors_in_and_out(self):
        for backend in HOST_BACKENDS:
            out, lse = deuce.flash_attn_with_kvcache(
                self.q, self.k, self.v, cache_seqlens=self.lengths, causal=True,
                return_softmax_lse=True, backend=backend)
            self.assertEqual((out.dtype, lse.dtype), (torch.bfloat16, torch.float32))
            self.assertClose(out.float(), self.wanted, 2e-2)
            self.assertClose(lse, self.wanted_lse.transpose(0, 2, 1), 2e-3)

    def test_wrapper_and_trtllm_shape(self):
        k, v = self.pages()
        indptr = torch.tensor([0, 50, 67], dtype=torch.int32)
        indices = torch.cat([self.table[0], self.table[1, :17]])
        q = self.q.reshape(4, 6, 64)
        for backend in HOST_BACKENDS:
            wrapper = deuce.BatchDecodeWithPagedKVCacheWrapper(
                torch.zeros(1 << 20, dtype=torch.uint8), "NHD", backend=backend)
            wrapper.plan(indptr, indices, torch.ones(2, dtype=torch.int32), 6, 2, 64, 1,
                         q_data_type=torch.bfloat16, q_len_per_req=2)
            self.assertClose(wrapper.run(q, (k, v)).float(), self.wanted.reshape(4, 6, 64), 2e-2)
            both = torch.stack([k, v], dim=1)
            self.assertTrue(torch.equal(wrapper.run(q, both), wrapper.run(q, (k, v))))
            out = deuce.trtllm_batch_decode_with_kv_cache(
                q, both, None, self.table, self.lengths, 50, bmm1_scale=0.125, kv_layout="NHD",
                q_len_per_req=2, backend=backend)
            self.assertClose(out.float(), self.wanted.reshape(4, 6, 64), 2e-2)

    def test_fp8_tensors_with_scales_in_tensors(self):
        k, v = (pool.to(torch.float8_e4m3fn) for pool in self.pages())
        q = self.q.reshape(4, 6, 64)
        common = dict(kv_layout="NHD", q_len_per_req=2, backend="reference")
        numbers = deuce.trtllm_batch_decode_with_kv_cache(
            q, (k, v), None, self.table, self.lengths, 50, 0.25, 0.5, **common)
        tensors = deuce.trtllm_batch_decode_with_kv_cache(
            q, (k, v), None, self.table, self.lengths, 50, torch.tensor([0.25]), torch.tensor(0.5),
            **common)
        self.assertTrue(torch.equal(numbers, tensors))

    def test_views_and_parameters(self):
        k = torch.nn.Parameter(torch.stack([self.k, self.v], dim=2), requires_grad=True)
        out = deuce.flash_attn_with_kvcache(
            self.q, k[:, :, 0], k[:, :, 1], cache_seqlens=self.lengths, causal=True,
            backend="reference")
        self.assertFalse(out.requires_grad)
        self.assertClose(out.float(), self.wanted, 2e-2)

    def test_other_devices_are_refused(self):
        self.assertRefused(deuce.Unsupported, "q", deuce.flash_attn_with_kvcache, self.q.to("meta"),
                           self.k, self.v)

    def test_operators_equal_the_functions(self):
        operator = torch.ops.deuce.flash_attn_with_kvcache
        out, lse = operator(self.q, self.k, self.v, cache_seqlens=self.lengths, causal=True,
                            backend="reference")
        wanted, wanted_lse = deuce.flash_attn_with_kvcache(
            self.q, self.k, self.v, cache_seqlens=self.lengths, causal=True,
            return_softmax_lse=True, backend="reference")
        self.assertTrue(torch.equal(out, wanted) and torch.equal(lse, wanted_lse))
        given, given_lse = torch.zeros_like(out), torch.zeros_like(lse)
        torch.ops.deuce.flash_attn_with_kvcache_out(
            self.q, self.k, self.v, cache_seqlens=self.lengths, causal=True, backend="reference",
            out=given, lse=given_lse)
        self.assertTrue(torch.equal(given, wanted) and torch.equal(given_lse, wanted_lse))
        k, v = self.pages()
        out, lse = torch.ops.deuce.trtllm_batch_decode_with_kv_cache(
            self.q.reshape(4, 6, 64), k, v, self.table, self.lengths, 50, bmm1_scale=0.125,
            q_len_per_req=2, kv_layout="NHD", backend="reference")
        self.assertClose(out.float(), self.wanted.reshape(4, 6, 64), 2e-2)

    def test_operators_pass_torchs_own_checks(self):
        keywords = dict(cache_seqlens=self.lengths, causal=True, backend="reference")
        tests = ("test_schema", "test_faketensor")
        torch.library.opcheck(torch.ops.deuce.flash_attn_with_kvcache.default,
                              (self.q, self.k, self.v), keywords, test_utils=tests)
        keywords.update(out=torch.zeros_like(self.q), lse=torch.zeros(2, 6, 2))
        torch.library.opcheck(torch.ops.deuce.flash_attn_with_kvcache_out.default,
                              (self.q, self.k, self.v), keywords, test_utils=tests)
        k, v = self.pages()
        torch.library.opcheck(
            torch.ops.deuce.trtllm_batch_decode_with_kv_cache.default,
            (self.q.reshape(4, 6, 64), k, v, self.table, self.lengths, 50),
            dict(q_len_per_req=2, kv_layout="NHD", backend="reference"), test_utils=tests)

    def test_one_graph_with_dynamic_shapes(self):
        operator = torch.ops.deuce.flash_attn_with_kvcache

        def layer(q, k, v, lengths):
            out, _ = operator(q * 2, k, v, cache_seqlens=lengths, backend="reference")
            return out + 1

        compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="eager")
        for tokens in (1, 2):
            q = self.q[:, :tokens]
            self.assertTrue(torch.equal(compiled(q, self.k, self.v, self.lengths),
                                        layer(q, self.k, self.v, self.lengths)))


if __name__ == "__main__":
    unittest.main()
