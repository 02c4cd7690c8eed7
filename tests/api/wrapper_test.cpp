// SPDX-License-Identifier: Apache-2.0
// deuce.hpp: ownership, the throwing forms, and the strides that its helpers fill in.
#include <gtest/gtest.h>

#include <type_traits>

#include "api/sample.h"

namespace deuce_test {
namespace {

using Strides = std::array<int64_t, 3>;

Strides strides(const int64_t (&stride)[3]) { return {stride[0], stride[1], stride[2]}; }

TEST(Wrapper, ErrorCarriesStatusFieldAndSentence) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  sample.config.num_kv_heads = 3;
  try {
    deuce::DecodePlan plan(sample.config);
    FAIL() << "a plan was made";
  } catch (const deuce::Error& error) {
    EXPECT_EQ(error.status(), DEUCE_INVALID_ARGUMENT);
    EXPECT_EQ(error.field(), "num_q_heads");
    EXPECT_STREQ(error.what(), "num_q_heads is 4: it must be a multiple of num_kv_heads, 3");
  }
  EXPECT_THROW(deuce::check(sample.config), deuce::Error);
}

TEST(Wrapper, EveryThrowingFormThrows) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  deuce::DecodePlan plan(sample.config);
  const Workspace workspace(plan.workspace_bytes());
  sample.args.batch = -1;
  EXPECT_THROW(plan.run(sample.args, workspace.data(), workspace.size()), deuce::Error);
  EXPECT_THROW(plan.explain(&sample.args), deuce::Error);
  EXPECT_THROW(plan.init_workspace(nullptr, 0), deuce::Error);
}

TEST(Wrapper, MovesAndNeverCopies) {
  static_assert(!std::is_copy_constructible_v<deuce::DecodePlan>);
  static_assert(std::is_nothrow_move_constructible_v<deuce::DecodePlan>);
  static_assert(std::is_nothrow_move_assignable_v<deuce::DecodePlan>);
  Sample sample(DEUCE_BACKEND_REFERENCE);
  deuce::DecodePlan first(sample.config);
  const std::size_t bytes = first.workspace_bytes();
  deuce::DecodePlan second(std::move(first));
  EXPECT_TRUE(static_cast<bool>(second));
  EXPECT_EQ(second.workspace_bytes(), bytes);
  deuce::DecodePlan third;
  EXPECT_FALSE(static_cast<bool>(third));
  third = std::move(second);
  const Workspace workspace(third.workspace_bytes());
  third.run(sample.args, workspace.data(), workspace.size());
}

TEST(Wrapper, AFailedCreateKeepsTheOldPlan) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  deuce::DecodePlan plan(sample.config);
  const deuce_decode_plan before = plan.handle();
  sample.config.head_dim_v = 0;
  EXPECT_EQ(deuce::DecodePlan::try_create(sample.config, plan), DEUCE_INVALID_ARGUMENT);
  EXPECT_EQ(plan.handle(), before);
}

TEST(Wrapper, AnEmptyPlanRefusesToRun) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  const deuce::DecodePlan plan;
  EXPECT_EQ(plan.workspace_bytes(), 0U);
  EXPECT_EQ(plan.try_run(sample.args, nullptr, 0), DEUCE_INVALID_ARGUMENT);
  EXPECT_FALSE(plan.take_fault().has_value());
}

TEST(Wrapper, HostWorkspaceHasTheAlignmentThatRunAsksFor) {
  const deuce::HostWorkspace workspace(1000);
  EXPECT_EQ(workspace.size(), 1000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(workspace.data()) % 256, 0U);
}

TEST(Wrapper, HelpersFillTheStridesOfEachLayout) {
  const int q = 0, k = 0, v = 0;
  int out = 0;
  float lse = 0;
  deuce_decode_args args = deuce::make_args();
  deuce::set_rows(args, &q, &out, &lse, 2, 6, 192, 128);
  EXPECT_EQ(args.q_len, 2);
  EXPECT_EQ(strides(args.q_stride), (Strides{2304, 1152, 192}));
  EXPECT_EQ(strides(args.out_stride), (Strides{1536, 768, 128}));
  EXPECT_EQ(strides(args.lse_stride), (Strides{12, 6, 1}));

  deuce::set_paged_nhd(args, &k, &v, 9, 16, 3, 192, 128);
  EXPECT_EQ(args.num_pages, 9);
  EXPECT_EQ(strides(args.k_stride), (Strides{9216, 576, 192}));
  EXPECT_EQ(strides(args.v_stride), (Strides{6144, 384, 128}));

  deuce::set_paged_hnd(args, &k, &v, 9, 16, 3, 64);
  EXPECT_EQ(strides(args.k_stride), (Strides{3072, 64, 1024}));
  EXPECT_EQ(strides(args.v_stride), strides(args.k_stride));

  deuce::set_contiguous(args, &k, &v, 4, int64_t{1} << 32, 3, 64);
  EXPECT_EQ(args.num_pages, 4);
  EXPECT_EQ(args.cache_slots, int64_t{1} << 32);
  EXPECT_EQ(strides(args.k_stride), (Strides{192 * (int64_t{1} << 32), 192, 64}));
}

TEST(Wrapper, NhdAndHndPagesGiveTheSameBits) {
  Sample nhd(DEUCE_BACKEND_REFERENCE), hnd(DEUCE_BACKEND_REFERENCE);
  constexpr std::size_t kPages = 12, kSlots = 8, kHeads = 2, kDim = 16;
  for (std::size_t page = 0; page < kPages; ++page) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      for (std::size_t head = 0; head < kHeads; ++head) {
        const std::size_t from = ((page * kSlots + slot) * kHeads + head) * kDim;
        const std::size_t to = ((page * kHeads + head) * kSlots + slot) * kDim;
        std::copy_n(&nhd.k[from], kDim, &hnd.k[to]);
        std::copy_n(&nhd.v[from], kDim, &hnd.v[to]);
      }
    }
  }
  deuce::set_paged_hnd(hnd.args, hnd.k.data(), hnd.v.data(), kPages, kSlots, kHeads, kDim);
  ASSERT_EQ(run(nhd), DEUCE_OK);
  ASSERT_EQ(run(hnd), DEUCE_OK);
  EXPECT_EQ(nhd.out, hnd.out);
  EXPECT_EQ(nhd.lse, hnd.lse);
}

}  // namespace
}  // namespace deuce_test
