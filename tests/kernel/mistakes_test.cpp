// SPDX-License-Identifier: Apache-2.0
// The shared parts under the whole frame, in a plain tiled attention, and the proof that the frame
// notices the mistakes kernels make: in masks, maxima, rescaling, merging and paging.
#include "kernel/backends.h"
#include "kernel/values.h"
#include "support/tiled.h"

namespace deuce::testing {
namespace {

TEST(TiledAttention, PassesTheFrameOnEveryDrawnCase) {
  const Property property = [](const Subject& subject, const Case& from) {
    return check_frame(subject, from);
  };
  for (uint64_t seed = 1; seed <= 80; ++seed) {
    const Case drawn = draw_case(seed + 5000, 5e5);
    const std::string failure = check_frame(tiled(Mistake::none), drawn);
    ASSERT_EQ(failure, "") << shrink(tiled(Mistake::none), drawn, property);
  }
}

/// A case with scores far from zero, many tiles and several workers.
Case demanding_case(uint64_t seed) {
  Rng rng(seed);
  Case from = fine_case({.name = "reference"});
  from.seed = seed;
  from.requests = requests_of({uniform(rng, 1, 700), 0, 5000, 2}, 3);
  from.kv_heads = 2;
  from.group = 2;
  from.page_size = 16;
  from.causal = true;
  from.sink = seed % 4 < 2;
  from.workers = 7;
  if (seed % 3 == 0) from.window_left = static_cast<int32_t>(uniform(rng, 0, 300));
  const auto slope = static_cast<float>(uniform(rng, -3, 3)) * 0.01F;
  const float level = seed % 2 == 0 ? -250 : 0;
  from.softmax_scale = 1;
  from.content = [=](char tensor, int32_t, int64_t, int64_t position, float* row) {
    if (tensor == 'v') return;
    for (int i = 1; i < 64; ++i) row[i] *= 0.1F;
    row[0] = tensor == 'q' ? 1 : level + slope * static_cast<float>(position);
  };
  return from;
}

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNoticed) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    const Case from = demanding_case(seed);
    ASSERT_EQ(check_frame(tiled(Mistake::none), from), "") << "the case itself is wrong";
    if (!check_frame(tiled(GetParam()), from).empty()) return;
    Case drawn = draw_case(seed, 2e5);
    if (!check_frame(tiled(GetParam()), drawn).empty()) return;
  }
  FAIL() << "no case notices mistake " << static_cast<int>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Tiled, Mistakes,
                         ::testing::Values(Mistake::max_starts_at_zero, Mistake::finite_mask,
                                           Mistake::rescale_forgotten, Mistake::rescale_of_sum_only,
                                           Mistake::partials_in_bf16, Mistake::accumulate_in_fp16,
                                           Mistake::merge_without_max, Mistake::sink_in_every_part,
                                           Mistake::causal_top_left, Mistake::window_by_tile,
                                           Mistake::last_tile_unmasked, Mistake::v_tail_not_cleared,
                                           Mistake::page_tail_dropped, Mistake::walk_stops_at_4096,
                                           Mistake::head_modulo, Mistake::one_worker_idle,
                                           Mistake::empty_rows_unwritten, Mistake::lse_base_2));

}  // namespace
}  // namespace deuce::testing
