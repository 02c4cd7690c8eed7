// SPDX-License-Identifier: Apache-2.0
// A hash of the element's index picks one of 256 encoded values; threads take blocks of the tensor.
#include "random_fill.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "reference/number_format.h"

namespace deuce::cli {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

/// SplitMix64's finaliser: eight well-mixed bytes from a counter.
uint64_t mix(uint64_t counter) {
  counter = (counter ^ (counter >> 30)) * 0xbf58476d1ce4e5b9U;
  counter = (counter ^ (counter >> 27)) * 0x94d049bb133111ebU;
  return counter ^ (counter >> 31);
}

template <class Element>
void fill_block(std::span<std::byte> block, uint64_t first, uint64_t seed,
                const std::array<uint32_t, 256>& values) {
  const std::size_t count = block.size() / sizeof(Element);
  uint64_t random = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 8 == 0) random = mix(seed + (first + i) * 0x9e3779b97f4a7c15U);
    const auto element = static_cast<Element>(values[random & 255]);
    random >>= 8;
    std::memcpy(block.data() + i * sizeof(Element), &element, sizeof(Element));
  }
}

}  // namespace

void fill_random(DType type, std::span<std::byte> bytes, uint64_t seed) {
  std::array<uint32_t, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        reference::encode((static_cast<double>(i) - 128) / 128, reference::number_format(type));
  }
  const std::size_t element = static_cast<std::size_t>(dtype_bytes(type));
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (;;) {
      const std::size_t begin = next.fetch_add(kBlockBytes);
      if (begin >= bytes.size()) return;
      const auto block = bytes.subspan(begin, std::min(kBlockBytes, bytes.size() - begin));
      const uint64_t first = begin / element;
      if (element == 1) fill_block<uint8_t>(block, first, seed, values);
      if (element == 2) fill_block<uint16_t>(block, first, seed, values);
      if (element == 4) fill_block<uint32_t>(block, first, seed, values);
    }
  };
  std::vector<std::thread> helpers(std::max(1U, std::thread::hardware_concurrency()) - 1);
  for (std::thread& helper : helpers) helper = std::thread(work);
  work();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace deuce::cli
