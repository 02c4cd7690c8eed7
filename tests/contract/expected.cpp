// SPDX-License-Identifier: Apache-2.0
// Inputs and expected words of the contracts; see expected.h.
#include "contract/expected.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace deuce::contract {
namespace {

constexpr std::array<int, 4> kExtent{64, 40, 3, 2};  // columns, rows, and two outer dimensions

struct Pattern {
  Swizzle swizzle;
  const char* name;
  int span;  // bytes of a row of the box
};
constexpr Pattern kPatterns[] = {{Swizzle::bytes128, "128", 128},
                                 {Swizzle::bytes64, "64", 64},
                                 {Swizzle::bytes32, "32", 32},
                                 {Swizzle::none, "no", 128}};

Case box_case(const Pattern& pattern, const char* where, std::array<int32_t, 4> coordinate) {
  Case contract{fmt::format("Box{}Swizzle{}", pattern.name, where), Operation::box, {}, coordinate};
  TensorMapSpec& map = contract.map;
  map.rank = 4;
  uint64_t stride = 2;
  for (std::size_t d = 0; d < 4; ++d) {
    map.extent[d] = static_cast<uint64_t>(kExtent[d]);
    if (d > 0) map.stride_bytes[d - 1] = stride;
    stride *= map.extent[d];
  }
  map.box = {static_cast<uint32_t>(pattern.span / 2),
             kTileBytes / static_cast<uint32_t>(pattern.span), 1, 1, 0};
  map.swizzle = pattern.swizzle;
  return contract;
}

/// Which 16-byte chunk of its row holds chunk `chunk`: XORed with the row, counted in steps of 128
/// bytes, as far as there are chunks. Boxes of the tests have rows of one swizzle span.
int chunk_of(Swizzle swizzle, int row, int chunk) {
  switch (swizzle) {
    case Swizzle::bytes128: return chunk ^ row % 8;
    case Swizzle::bytes64: return chunk ^ row / 2 % 4;
    case Swizzle::bytes32: return chunk ^ row / 4 % 2;
    case Swizzle::none: break;
  }
  return chunk;
}

std::vector<uint32_t> expected_box(const Case& contract) {
  const std::vector<uint16_t> values = tensor();
  std::vector<uint16_t> tile(kTileBytes / 2);
  const int columns = static_cast<int>(contract.map.box[0]);
  const int rows = static_cast<int>(contract.map.box[1]);
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const std::array<int, 4> at{contract.coordinate[0] + column, contract.coordinate[1] + row,
                                  contract.coordinate[2], contract.coordinate[3]};
      bool inside = true;
      for (std::size_t d = 0; d < 4; ++d) inside = inside && at[d] >= 0 && at[d] < kExtent[d];
      const int from = ((at[3] * kExtent[2] + at[2]) * kExtent[1] + at[1]) * kExtent[0] + at[0];
      const int chunk = chunk_of(contract.map.swizzle, row, column / 8);
      const int to = row * columns + chunk * 8 + column % 8;
      tile[static_cast<std::size_t>(to)] = inside ? values[static_cast<std::size_t>(from)] : 0;
    }
  }
  std::vector<uint32_t> words(kOutWords);
  std::memcpy(words.data(), tile.data(), kTileBytes);
  return words;
}

uint32_t expected_shuffle(int warp, int lane, int which) {
  const auto value = [&](int from) { return static_cast<uint32_t>(100 * warp + from); };
  switch (which) {
    case 0: return value((lane + 5) % 32);
    case 1: return value(lane ^ 9);
    case 2: return value(lane < 3 ? lane : lane - 3);
    case 3: return 0x49249249u;  // every third lane
    default: return warp == 2 ? 1 : 0;
  }
}

/// 16-bit element `column` of 16-byte row `row` of the tile.
uint32_t tile_element(int row, int column) {
  const uint32_t word = static_cast<uint32_t>(4 * row + column / 2) * kScatter;
  return column % 2 == 0 ? word & 0xffffu : word >> 16;
}

/// Register `i` of a thread: of matrix i, two elements of row lane / 4, or of column lane / 4.
uint32_t expected_matrix(int thread, int i, bool transposed) {
  const int first = thread / 32 * 32, line = thread % 32 / 4, pair = thread % 4 * 2;
  const auto element = [&](int row, int column) {
    return tile_element((first + 8 * i + row) ^ 5, column);
  };
  return transposed ? element(pair, line) | element(pair + 1, line) << 16
                    : element(line, pair) | element(line, pair + 1) << 16;
}

/// Element i of a thread's fragment of D = start + A B: row lane / 4 + 8 (i / 2), column
/// first + 2 (lane % 4) + i % 2, over `depth` elements.
uint32_t expected_product(int thread, int i, int first, int depth, bool accumulates) {
  const int row = thread % 32 / 4 + 8 * (i / 2), column = first + thread % 4 * 2 + i % 2;
  int sum = accumulates ? 8 * row + column : 0;
  for (int k = 0; k < depth; ++k) {
    sum += ((3 * row + 5 * k + thread / 32) % 7 - 3) * ((2 * k + 3 * column) % 5 - 2);
  }
  return std::bit_cast<uint32_t>(static_cast<float>(sum));
}

/// e4m3: sign, 4 bits of exponent with bias 7, 3 bits of fraction; all ones is NaN, no infinity.
/// As half, whose exponent has bias 15 and whose fraction has 10 bits.
uint32_t expected_half(uint32_t code) {
  const uint32_t sign = code & 0x80u, exponent = code >> 3 & 15u, fraction = code & 7u;
  if ((code & 0x7fu) == 0x7fu) return kNan;
  if (exponent > 0) return sign << 8 | (exponent - 7 + 15) << 10 | fraction << 7;
  // fraction x 2^-9: 1, 2 to 3, 4 to 7 of them.
  if (fraction == 0) return sign << 8;
  const uint32_t power = fraction >= 4 ? 2 : fraction >= 2 ? 1 : 0;
  return sign << 8 | (power - 9 + 15) << 10 | (fraction - (1u << power)) << (10 - power);
}

uint32_t expected_swap(uint32_t word) {
  return (word & 0xffu) | (word >> 16 & 0xffu) << 8 | (word >> 8 & 0xffu) << 16 |
         (word & 0xff000000u);
}

uint32_t word_of_source(int index) {
  const std::vector<uint16_t> values = tensor();
  uint32_t word;
  std::memcpy(&word, values.data() + 2 * index, sizeof word);
  return word;
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> list{{"Phases", Operation::phases},
                         {"NotBeforeTheLastArrival", Operation::not_before},
                         {"NotBeforeTheLastByte", Operation::bytes},
                         {"NamedBarriers", Operation::named_barriers},
                         {"Shuffles", Operation::shuffles},
                         {"Matrices", Operation::matrices},
                         {"MmaSync", Operation::mma_sync},
                         {"WgmmaKeys", Operation::wgmma_keys},
                         {"WgmmaValues", Operation::wgmma_values},
                         {"E4m3", Operation::e4m3}};
  for (const Pattern& pattern : kPatterns) {
    list.push_back(box_case(pattern, "Inside", {0, 5, 1, 1}));
    list.push_back(box_case(pattern, "OverTheEnd", {16, 30, 2, 0}));
    list.push_back(box_case(pattern, "BeforeTheStart", {-8, -3, 0, 0}));
    list.push_back(box_case(pattern, "Outside", {0, 0, 0, 7}));
  }
  return list;
}

std::vector<uint16_t> tensor() {
  std::vector<uint16_t> values(64 * 40 * 3 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<uint16_t>(i * 40503 % 65521 + 1);
  }
  return values;
}

std::vector<uint32_t> expected(const Case& contract) {
  if (contract.operation == Operation::box) return expected_box(contract);
  std::vector<uint32_t> words(kOutWords);
  for (int thread = 0; thread < kThreads; ++thread) {
    uint32_t* word = words.data() + thread;
    switch (contract.operation) {
      case Operation::phases: *word = static_cast<uint32_t>(60 * ((thread + 1) % 128) + 15); break;
      case Operation::not_before: *word = 4; break;
      case Operation::bytes:
        *word = word_of_source(thread % 64);
        word[kThreads] = word_of_source(32 + thread % 32);
        break;
      case Operation::named_barriers:
        *word = thread < 64 ? 0 : static_cast<uint32_t>(600 + 3 * (thread - 64));
        break;
      case Operation::shuffles:
        for (int i = 0; i < 5; ++i) {
          words[static_cast<std::size_t>(5 * thread + i)] =
              expected_shuffle(thread / 32, thread % 32, i);
        }
        break;
      case Operation::matrices:
        for (int i = 0; i < 4; ++i) {
          word[3 * thread + i] = expected_matrix(thread, i, false);
          word[3 * thread + 4 * kThreads + i] = expected_matrix(thread, i, true);
        }
        break;
      case Operation::mma_sync:
        for (int i = 0; i < 4; ++i) {
          word[3 * thread + i] = word[3 * thread + 4 * kThreads + i] =
              expected_product(thread, i, 0, 16, true);
        }
        break;
      case Operation::wgmma_keys:
      case Operation::wgmma_values:
        for (int i = 0; i < 8; ++i) {
          word[7 * thread + i] = expected_product(thread, (thread + i) % 4, 8 * i, 32,
                                                  contract.operation == Operation::wgmma_values);
        }
        break;
      case Operation::e4m3: {
        const auto code = static_cast<uint32_t>(2 * thread);
        *word = expected_half(code) | expected_half(code + 1) << 16;
        word[kThreads] = expected_swap(static_cast<uint32_t>(thread + 1) * kScatter);
        break;
      }
      case Operation::box: break;
    }
  }
  return words;
}

}  // namespace deuce::contract
