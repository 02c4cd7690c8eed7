// SPDX-License-Identifier: Apache-2.0
// Arithmetic of mma.sync and ldmatrix; see matrix.h.
#include "emulator/matrix.h"

#include <cstring>

#include "kernel/numbers.h"

namespace deuce::emulator {
namespace {

constexpr std::size_t kRows = 16, kColumns = 8, kDepth = 16;

float value_of(uint32_t bits, bool bf16) {
  const auto element = static_cast<uint16_t>(bits);
  return bf16 ? to_float(Bf16{element}) : to_float(Half{element});
}

/// Two neighbouring elements of a word.
void unpack(uint32_t word, bool bf16, double* first, std::size_t stride) {
  first[0] = value_of(word, bf16);
  first[stride] = value_of(word >> 16, bf16);
}

}  // namespace

void multiply_16x8x16(const MatrixFragments& fragments, bool bf16) {
  alignas(64) double a[kRows][kDepth];     // row, k
  alignas(64) double b[kDepth][kColumns];  // k, column
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t group = lane / 4, pair = 2 * (lane % 4);
    for (std::size_t i = 0; i < 4; ++i) {
      unpack(fragments.a[lane][i], bf16, &a[group + 8 * (i % 2)][pair + 8 * (i / 2)], 1);
    }
    for (std::size_t i = 0; i < 2; ++i) {
      unpack(fragments.b[lane][i], bf16, &b[pair + 8 * i][group], kColumns);
    }
  }
  alignas(64) double sum[kRows][kColumns] = {};
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t k = 0; k < kDepth; ++k) {
      for (std::size_t column = 0; column < kColumns; ++column) {
        sum[row][column] += a[row][k] * b[k][column];
      }
    }
  }
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t group = lane / 4, pair = 2 * (lane % 4);
    for (std::size_t i = 0; i < 4; ++i) {
      fragments.d[lane][i] += static_cast<float>(sum[group + 8 * (i / 2)][pair + i % 2]);
    }
  }
}

uint32_t matrix_word(const std::array<const std::byte*, 8>& rows, int lane, bool transposed) {
  const auto line = static_cast<std::size_t>(lane / 4), pair = static_cast<std::size_t>(lane % 4);
  uint32_t word = 0;
  if (!transposed) {
    std::memcpy(&word, rows[line] + 4 * pair, sizeof word);
    return word;
  }
  uint16_t low, high;
  std::memcpy(&low, rows[2 * pair] + 2 * line, sizeof low);
  std::memcpy(&high, rows[2 * pair + 1] + 2 * line, sizeof high);
  return low | static_cast<uint32_t>(high) << 16;
}

}  // namespace deuce::emulator
