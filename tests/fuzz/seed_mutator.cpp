// SPDX-License-Identifier: Apache-2.0
// Gives libFuzzer the target's seeds without a corpus folder: now and then a mutation starts from
// one of them instead of from the input at hand.
#include <algorithm>

#include "fuzz/fuzz_target.h"

extern "C" std::size_t LLVMFuzzerMutate(uint8_t* data, std::size_t bytes, std::size_t room);

extern "C" std::size_t LLVMFuzzerCustomMutator(uint8_t* data, std::size_t bytes, std::size_t room,
                                               unsigned random) {
  static const std::vector<std::string> seeds = fuzz_seeds();
  constexpr unsigned kOneIn = 64;
  if (bytes < 8 || random % kOneIn == 0) {
    const std::string& seed = seeds[random / kOneIn % seeds.size()];
    bytes = std::min(seed.size(), room);
    std::copy_n(seed.begin(), bytes, data);
  }
  return LLVMFuzzerMutate(data, bytes, room);
}
