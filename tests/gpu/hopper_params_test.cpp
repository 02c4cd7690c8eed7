// SPDX-License-Identifier: Apache-2.0
// What the Hopper backend refuses of a call before any tensor map is encoded; needs no GPU.
#include "plan/hopper_params.h"

#include <gtest/gtest.h>

namespace deuce::hopper {
namespace {

struct Decode {
  Problem problem;
  Call call{};
  Decode() {
    problem.num_q_heads = 8;
    problem.num_kv_heads = 2;
    problem.group = 4;
    problem.head_dim_qk = problem.head_dim_v = 128;
    problem.q_type = problem.kv_type = problem.out_type = DType::bf16;
    call.batch = call.num_pages = 2;
    call.q_len = 1;
    call.cache_slots = 64;
    for (auto* stride : {&call.k_stride, &call.v_stride}) {
      (*stride)[0] = 64 * 2 * 128;
      (*stride)[1] = 2 * 128;
      (*stride)[2] = 128;
    }
    for (auto* stride : {&call.q_stride, &call.out_stride}) {
      (*stride)[0] = (*stride)[1] = 8 * 128;
      (*stride)[2] = 128;
    }
  }
};

TEST(HopperCall, RefusesWhatNoTensorMapHolds) {
  struct Refusal {
    void (*change)(Decode&);
    const char* sentence;
  };
  for (const auto& [change, sentence] :
       {Refusal{[](Decode& d) { d.call.k_stride[2] = int64_t{1} << 39; },
                "k_stride[2] is 549755813888 elements: hopper takes multiples of 16 bytes from 0 "
                "to 2^40 - 16"},
        Refusal{[](Decode& d) { d.call.v_stride[0] = -128; },
                "v_stride[0] is -128 elements: hopper takes multiples of 16 bytes from 0 to 2^40 "
                "- 16"},
        Refusal{[](Decode& d) { d.call.v_stride[1] = 260; },
                "v_stride[1] is 260 elements: hopper takes multiples of 16 bytes from 0 to 2^40 - "
                "16"},
        Refusal{[](Decode& d) { d.call.k_stride[0] = 0; },
                "k_stride[0] is 0 with 2 rows: hopper shares a row of a contiguous cache, of K and "
                "V alike"},
        Refusal{[](Decode& d) { d.call.q_stride[2] = 129; },
                "q_stride[2] is 129 elements: hopper takes even strides"},
        Refusal{[](Decode& d) { d.call.cache_slots = (int64_t{1} << 32) + 1; },
                "cache_slots is 4294967297: hopper takes at most 2^32"}}) {
    Decode decode;
    ASSERT_TRUE(check_call(decode.problem, decode.call).ok());
    change(decode);
    const Status status = check_call(decode.problem, decode.call);
    EXPECT_EQ(status.code(), DEUCE_UNSUPPORTED);
    EXPECT_EQ(status.sentence(), sentence);
  }
}

TEST(HopperCall, StridesThatAreNeverSteppedOverMayBeAnything) {
  Decode decode;
  decode.call.batch = decode.call.num_pages = 1;
  decode.call.k_stride[0] = decode.call.v_stride[0] = int64_t{1} << 45;
  decode.call.q_stride[0] = decode.call.q_stride[1] = 7;
  decode.call.out_stride[0] = decode.call.out_stride[1] = -3;
  const Status status = check_call(decode.problem, decode.call);
  EXPECT_TRUE(status.ok()) << status.sentence();
  for (const bool is_v : {false, true}) {
    EXPECT_EQ(map_spec(Config{}, decode.problem, decode.call, is_v).fault(), nullptr);
  }
}

}  // namespace
}  // namespace deuce::hopper
