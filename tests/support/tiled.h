// SPDX-License-Identifier: Apache-2.0
// A plain fp32 attention built from the shared parts (work.h, publish.h, combine.h), one tile after
// the other, with mistakes that can be switched on. Without a mistake it must pass every property;
// with one it stands for a kernel that has made it.
#pragma once

#include "support/subject.h"

namespace deuce::testing {

enum class Mistake {
  none,
  max_starts_at_zero,   // running maximum
  finite_mask,          // -1e30 in place of -inf for masked scores
  rescale_forgotten,    // o keeps its old scale when the maximum grows
  rescale_of_sum_only,  // lazily skipped, never made up for in o
  partials_in_bf16,
  accumulate_in_fp16,
  merge_without_max,   // weights of partials taken as 1
  sink_in_every_part,  // joins the denominator once a piece
  causal_top_left,
  window_by_tile,      // left edge rounded down to the tile
  last_tile_unmasked,  // keys past the end attended as if live
  v_tail_not_cleared,  // weight 0 times whatever lies there
  page_tail_dropped,   // the last 3 slots of a page
  walk_stops_at_4096,
  head_modulo,      // KV head = head % kv heads
  one_worker_idle,  // the last share is not walked
  empty_rows_unwritten,
  lse_base_2,  // given for natural
};

/// A subject that runs this attention in place of a backend.
Subject tiled(Mistake mistake);

}  // namespace deuce::testing
