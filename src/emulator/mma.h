// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma and wgmma as arithmetic: descriptors are decoded bit by bit, then one K step is
// computed.
// Within a K step sums are in double and rounded once; steps are added in fp32 in issue order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernel/swizzle.h"

namespace deuce::emulator {

/// Fields of a 64-bit shared-memory matrix descriptor.
struct SharedOperand {
  uint32_t start = 0, leading_bytes = 0, stride_bytes = 0;
  Swizzle swizzle = Swizzle::none;
  const char* fault = nullptr;  // a rule that the bits break
};
SharedOperand decode_operand(uint64_t descriptor);
/// The same of wgmma, whose descriptor has other bits for the swizzle and none for a version.
SharedOperand decode_wgmma_operand(uint64_t descriptor);

/// Fields of a 32-bit instruction descriptor of kind::f16.
struct MmaShape {
  int rows = 0, columns = 0;
  bool a_bf16 = false, b_bf16 = false, a_mn_major = false, b_mn_major = false;
  const char* fault = nullptr;
};
MmaShape decode_instruction(uint32_t descriptor);

/// Shared address (swizzled) of the 16-byte chunk that holds elements of one operand: for a K-major
/// operand chunk 0 or 1 of row `row`, for an MN-major one chunk `chunk` (8 columns) of K row `row`.
uint32_t chunk_address(const SharedOperand& operand, bool mn_major, uint32_t row, uint32_t chunk);

/// 16 values of each of up to 256 rows (a K step of one operand), as floats.
struct Panel {
  alignas(64) std::array<std::array<float, 16>, 256> row;
};
void load_panel(const std::byte* shared, const SharedOperand& operand, bool mn_major, bool bf16,
                int rows, Panel& panel);
/// From tensor memory: `words` points to column 0 of lane 0, 512 words a lane.
void load_panel(const uint32_t* words, uint32_t column, bool bf16, Panel& panel);

/// Where D lies: `rows` rows, `row_words` floats from one to the next.
struct ResultRows {
  float* first;
  int rows;
  std::size_t row_words;
};
/// D[rows x columns] (+)= A B^T; columns are a multiple of 16.
void multiply(const Panel& a, const Panel& b, int columns, bool accumulate, const ResultRows& d);

}  // namespace deuce::emulator
