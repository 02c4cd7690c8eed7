// SPDX-License-Identifier: Apache-2.0
// A small call of the emulator through the public API, for tests of what a caller is told.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deuce/deuce.hpp"

namespace deuce::test {

/// Two requests of 150 and 40 keys, eight query heads on two KV heads, head dim 64, bf16. K and V
/// lie in one buffer, each row of out behind its row of q: no tensor is in one piece.
struct EmulatedCall {
  static constexpr int kBatch = 2, kQHeads = 8, kKvHeads = 2, kHeadDim = 64, kSlots = 160;

  EmulatedCall();
  EmulatedCall(const EmulatedCall&) = delete;
  EmulatedCall& operator=(const EmulatedCall&) = delete;
  /// The same values with every tensor in one piece.
  void make_dense();
  deuce_status run();
  uint16_t out(int request, int head, int column) const;
  uint16_t& v(int request, int slot, int head, int column);

  deuce_decode_config config = deuce::make_config();
  deuce_decode_args args = deuce::make_args();
  std::vector<uint16_t> rows, cache, dense[4];
  std::vector<float> lse;
  std::vector<int32_t> kv_len{150, 40};
};

}  // namespace deuce::test
