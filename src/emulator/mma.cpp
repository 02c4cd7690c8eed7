// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma and wgmma as arithmetic; see mma.h.
#include "emulator/mma.h"

#include <cmath>
#include <cstring>

#include "kernel/numbers.h"

namespace deuce::emulator {
namespace {

constexpr int kRows = 128;
constexpr int kSteps = 16;
constexpr int kLaneWords = 512;

float element(const std::byte* at, bool bf16) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bf16 ? to_float(Bf16{bits}) : to_float(Half{bits});
}

// kWidth columns of one row: as many sums side by side as hide the latency of an addition.
template <int kWidth>
[[gnu::always_inline]] inline void columns_of_row(const std::array<float, kSteps>& a,
                                                  const double (*b)[256], int first, double* sum) {
  double part[kWidth] = {};
  for (int k = 0; k < kSteps; ++k) {
    const double factor = a[static_cast<std::size_t>(k)];
    for (int i = 0; i < kWidth; ++i) part[i] += factor * b[k][first + i];
  }
  std::memcpy(sum + first, part, sizeof part);
}

// One row times the transposed panel, of a multiple of 16 columns; products of 16-bit values are
// exact, so a fused and a separate multiply-add give the same bits and every CPU computes the same
// result.
[[gnu::always_inline]] inline void row_times_panel(const std::array<float, kSteps>& a,
                                                   const double (*b)[256], int columns,
                                                   double* sum) {
  constexpr int kWide = 32, kNarrow = 16;
  int n = 0;
  for (; n + kWide <= columns; n += kWide) columns_of_row<kWide>(a, b, n, sum);
  for (; n < columns; n += kNarrow) columns_of_row<kNarrow>(a, b, n, sum);
}

[[gnu::target("avx2,fma")]] void row_avx2(const std::array<float, kSteps>& a,
                                          const double (*b)[256], int columns, double* sum) {
  row_times_panel(a, b, columns, sum);
}
void row_plain(const std::array<float, kSteps>& a, const double (*b)[256], int columns,
               double* sum) {
  row_times_panel(a, b, columns, sum);
}

}  // namespace

SharedOperand decode_operand(uint64_t descriptor) {
  const auto field = [&](int low, int bits) {
    return static_cast<uint32_t>(descriptor >> low & ((uint64_t{1} << bits) - 1));
  };
  SharedOperand operand;
  operand.start = field(0, 14) << 4;
  operand.leading_bytes = field(16, 14) << 4;
  operand.stride_bytes = field(32, 14) << 4;
  if (field(46, 3) != 1) operand.fault = "bits 46-48 are not 001";
  if (field(49, 3) != 0) operand.fault = "base offset is not 0";
  if (field(52, 1) != 0) operand.fault = "leading dimension mode is absolute";
  if (field(14, 2) != 0) operand.fault = "the start address has carried into bits 14-15";
  switch (field(61, 3)) {
    case 0: operand.swizzle = Swizzle::none; break;
    case 2: operand.swizzle = Swizzle::bytes128; break;
    case 4: operand.swizzle = Swizzle::bytes64; break;
    case 6: operand.swizzle = Swizzle::bytes32; break;
    default: operand.fault = "swizzle field is not none, 32, 64 or 128 bytes";
  }
  return operand;
}

SharedOperand decode_wgmma_operand(uint64_t descriptor) {
  const auto field = [&](int low, int bits) {
    return static_cast<uint32_t>(descriptor >> low & ((uint64_t{1} << bits) - 1));
  };
  constexpr Swizzle kPatterns[] = {Swizzle::none, Swizzle::bytes128, Swizzle::bytes64,
                                   Swizzle::bytes32};
  SharedOperand operand;
  operand.start = field(0, 14) << 4;
  operand.leading_bytes = field(16, 14) << 4;
  operand.stride_bytes = field(32, 14) << 4;
  operand.swizzle = kPatterns[field(62, 2)];
  if (field(14, 2) != 0) operand.fault = "the start address has carried into bits 14-15";
  if (field(30, 2) != 0 || field(46, 3) != 0 || field(52, 10) != 0) {
    operand.fault = "a bit that has no meaning is set";
  }
  if (field(49, 3) != 0) operand.fault = "base offset is not 0";
  return operand;
}

MmaShape decode_instruction(uint32_t descriptor) {
  const auto field = [&](int low, int bits) { return descriptor >> low & ((1u << bits) - 1); };
  MmaShape shape;
  shape.a_bf16 = field(7, 3) == 1;
  shape.b_bf16 = field(10, 3) == 1;
  shape.a_mn_major = field(15, 1) != 0;
  shape.b_mn_major = field(16, 1) != 0;
  shape.columns = static_cast<int>(field(17, 6)) * 8;
  shape.rows = static_cast<int>(field(24, 5)) * 16;
  if (field(4, 2) != 1) shape.fault = "D is not fp32";
  if (field(7, 3) > 1 || field(10, 3) > 1) shape.fault = "A or B is neither fp16 nor bf16";
  if (field(0, 4) != 0 || field(6, 1) != 0 || field(13, 2) != 0 || field(23, 1) != 0 ||
      field(29, 3) != 0) {
    shape.fault = "a sparsity, saturation, negation, shift or reserved bit is set";
  }
  if (shape.rows != 128) shape.fault = "M is not 128";
  if (shape.columns < 16 || shape.columns > 256 || shape.columns % 16 != 0) {
    shape.fault = "N is not a multiple of 16 up to 256";
  }
  return shape;
}

uint32_t chunk_address(const SharedOperand& operand, bool mn_major, uint32_t row, uint32_t chunk) {
  const uint32_t span = span_bytes(operand.swizzle);
  uint32_t offset = 0;
  if (operand.swizzle == Swizzle::none) {  // 8 x 16-byte core matrices
    offset = row / 8 * operand.stride_bytes + row % 8 * 16 + chunk * operand.leading_bytes;
  } else if (mn_major) {
    const uint32_t byte = chunk * 16;
    offset = byte / span * operand.leading_bytes + row / 8 * operand.stride_bytes + row % 8 * span +
             byte % span;
  } else {
    offset = row / 8 * operand.stride_bytes + row % 8 * span + chunk * 16;
  }
  return swizzled(operand.swizzle, operand.start + offset);
}

void load_panel(const std::byte* shared, const SharedOperand& operand, bool mn_major, bool bf16,
                int rows, Panel& panel) {
  if (mn_major) {
    for (uint32_t k = 0; k < kSteps; ++k) {
      for (uint32_t chunk = 0; chunk < static_cast<uint32_t>(rows) / 8; ++chunk) {
        const std::byte* at = shared + chunk_address(operand, true, k, chunk);
        for (uint32_t i = 0; i < 8; ++i) panel.row[chunk * 8 + i][k] = element(at + 2 * i, bf16);
      }
    }
    return;
  }
  for (uint32_t r = 0; r < static_cast<uint32_t>(rows); ++r) {
    for (uint32_t chunk = 0; chunk < 2; ++chunk) {
      const std::byte* at = shared + chunk_address(operand, false, r, chunk);
      for (uint32_t i = 0; i < 8; ++i) panel.row[r][chunk * 8 + i] = element(at + 2 * i, bf16);
    }
  }
}

void load_panel(const uint32_t* words, uint32_t column, bool bf16, Panel& panel) {
  for (std::size_t lane = 0; lane < kRows; ++lane) {
    std::array<std::byte, 32> row;
    std::memcpy(row.data(), words + lane * kLaneWords + column, row.size());
    for (std::size_t k = 0; k < kSteps; ++k) panel.row[lane][k] = element(&row[2 * k], bf16);
  }
}

void multiply(const Panel& a, const Panel& b, int columns, bool accumulate, const ResultRows& d) {
  static const bool kHasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  alignas(64) double transposed[kSteps][256];
  alignas(64) double sum[256];
  for (int n = 0; n < columns; ++n) {
    for (int k = 0; k < kSteps; ++k) transposed[k][n] = b.row[n][k];
  }
  const std::size_t row_bytes = static_cast<std::size_t>(columns) * sizeof(float);
  std::array<float, 256> before{};  // D of the row above, before this step
  for (std::size_t m = 0; m < static_cast<std::size_t>(d.rows); ++m) {
    float* out = d.first + m * d.row_words;
    // Padding rows are copies of each other: compute such a run once.
    const bool same = m > 0 && std::memcmp(&a.row[m], &a.row[m - 1], sizeof a.row[m]) == 0 &&
                      (!accumulate || std::memcmp(out, before.data(), row_bytes) == 0);
    if (accumulate) std::memcpy(before.data(), out, row_bytes);
    if (same) {
      std::memcpy(out, out - d.row_words, row_bytes);
      continue;
    }
    (kHasAvx2 ? row_avx2 : row_plain)(a.row[m], transposed, columns, sum);
    for (int n = 0; n < columns; ++n) {
      const auto step = static_cast<float>(sum[n]);
      out[n] = accumulate ? out[n] + step : step;
    }
  }
}

}  // namespace deuce::emulator
