// SPDX-License-Identifier: Apache-2.0
// A problem that one Hopper kernel serves, for traces of it on the emulator and on a GPU.
#pragma once

#include "plan/hopper_shapes.h"
#include "record_trace.h"

namespace deuce::cli {

/// Two CTAs cut it, and every slot of the deepest ring goes round.
inline TraceSettings traced_case(const hopper::Config& shape) {
  TraceSettings settings;
  settings.blocks = 2;
  settings.spec.kernel = Backend::hopper;
  settings.spec.head_dim = shape.head_dim;
  settings.spec.bf16 = shape.element != hopper::Element::half;
  settings.spec.e4m3 = shape.element == hopper::Element::e4m3;
  settings.spec.group = shape.rows();
  settings.spec.kv_len = {3000, 0, 70, 300};
  settings.spec.num_splits = shape.fixed_borders ? 3 : 0;
  settings.spec.score_slots = shape.score_slots;
  settings.spec.row_replicas = 0;
  return settings;
}

/// Tiles that its requests have.
inline int tiles_of(const TraceSettings& settings) {
  int tiles = 0;
  for (const int32_t keys : settings.spec.kv_len) {
    tiles += (keys + hopper::kTileTokens - 1) / hopper::kTileTokens;
  }
  return tiles;
}

}  // namespace deuce::cli
