# SPDX-License-Identifier: Apache-2.0
"""The emulator through Python: what it is given, and what it says of a hazard."""
import unittest

import deuce
import support
from support import np


def setUpModule():
    support.needs_numpy()
    if deuce.backends()["emulator"] != "ready":
        raise unittest.SkipTest("the library has no emulator")


def bf16(rng, *shape):
    return (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def floats(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Emulator(support.Case):

    def setUp(self):
        rng = np.random.default_rng(3)
        self.call = dict(q=bf16(rng, 2, 1, 8, 64), k_cache=bf16(rng, 2, 160, 2, 64),
                         v_cache=bf16(rng, 2, 160, 2, 64), q_dtype="bfloat16",
                         kv_dtype="bfloat16", backend="emulator")

    def test_the_seed_changes_the_schedule_and_no_bit(self):
        first = deuce.flash_attn_with_kvcache(**self.call)
        for seed in (1, 2**63):
            again = deuce.flash_attn_with_kvcache(**self.call, emulator_seed=seed)
            self.assertEqual(first.tobytes(), again.tobytes())

    def test_row_replicas_are_chosen_or_given(self):
        for given, taken in ((0, 4), (1, 1), (2, 2)):
            answer = deuce.explain(deuce.flash_attn_with_kvcache, **self.call, row_replicas=given)
            self.assertEqual(answer["kernel"]["row_replicas"], taken)

    def test_a_hazard_is_one_line_that_says_how_to_repeat_it(self):
        with self.assertRaises(deuce.Hazard) as caught:
            deuce.flash_attn_with_kvcache(**self.call, out=self.call["q"], emulator_seed=9)
        self.assertRegex(str(caught.exception),
                         "^emulator: H20: store to q, .*; replay: the same call with emulator_seed "
                         "9, row_replicas 4$")

    def test_packed_keys_of_several_requests_are_their_own(self):
        rng = np.random.default_rng(4)
        lengths = (5, 200, 0, 130)
        ends = np.cumsum((0, *lengths)).astype(np.int32)
        call = dict(q=bf16(rng, len(lengths), 8, 64), k=bf16(rng, ends[-1], 2, 64),
                    v=bf16(rng, ends[-1], 2, 64), q_dtype="bfloat16", kv_dtype="bfloat16",
                    cu_seqlens_q=np.arange(len(lengths) + 1, dtype=np.int32), max_seqlen_q=1,
                    cu_seqlens_k=ends, max_seqlen_k=max(lengths))
        wanted = deuce.flash_attn_varlen_func(**call, backend="reference")
        for backend in ("emulator", "emulator:hopper"):
            found = deuce.flash_attn_varlen_func(**call, backend=backend)
            error = np.abs(floats(found) - floats(wanted))
            self.assertLess(float(error.max()), 0.02, backend)

    def test_the_hopper_kernel_runs_as_well(self):
        wanted = deuce.flash_attn_with_kvcache(**{**self.call, "backend": "reference"})
        call = {**self.call, "backend": "emulator:hopper"}
        for seed in (0, 5):
            got = deuce.flash_attn_with_kvcache(**call, emulator_seed=seed)
            np.testing.assert_allclose(floats(got), floats(wanted), rtol=2**-7, atol=2**-7)
        answer = deuce.explain(deuce.flash_attn_with_kvcache, **call)
        self.assertEqual(answer["kernel"]["kernel"], "hopper")
        self.assertRefused(deuce.Unsupported, "score_slots", deuce.flash_attn_with_kvcache, **call,
                           score_slots=2)

    def test_half_a_name_is_no_backend(self):
        deuce.flash_attn_with_kvcache(**{**self.call, "backend": "emulator:blackwell"})
        for name in ("emulator:", "emulator:cpu", "cpu:", ":blackwell"):
            self.assertRefused(deuce.InvalidArgument, "backend", deuce.flash_attn_with_kvcache,
                               **{**self.call, "backend": name})


if __name__ == "__main__":
    unittest.main()
