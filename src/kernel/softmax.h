// SPDX-License-Identifier: Apache-2.0
// exp2 partly by polynomial, as FlashAttention-4 does: the special-function unit is the narrowest
// pipe of a decode kernel, the FMA pipe has room. Used by softmax warps with rows in registers.
// Which elements are emulated depends on the shape alone: never on masks, batch or slot count.
#pragma once

#include <bit>
#include <cstdint>

#include "kernel/machine.h"

namespace deuce {

/// Of a row of 128 in fragments of 32: is element k of fragment `fragment` computed by polynomial?
/// `frequency` 16: four of 16 in the middle fragments; 0: none. The last fragment never is, because
/// its latency is exposed.
constexpr bool is_emulated(int frequency, int fragment, int k) {
  if (frequency == 0 || fragment < 1 || fragment > 2) return false;
  return k / 2 * 2 % frequency >= frequency - 4;
}

/// 2^x for x <= 127, relative error below 3e-7 on [-126, 127]; x <= -127 gives 0. Degree 5, minimax
/// in relative error on [0, 1) with the constant pinned to 1 (Remez exchange). Degree 3, which P
/// would not notice, shows in the LSE of short rows: 9e-5.
template <CoreMachine Machine>
DEUCE_DEVICE float exp2_polynomial(Machine& machine, float x) {
  constexpr float kShift = 12582912.0F;  // 2^23 + 2^22: the integer part lands in the low bits
  const float clamped = x < -127.0F ? -127.0F : x;
  const float shifted = machine.add_round_down(clamped, kShift);
  const float fraction = clamped - (shifted - kShift);
  float value = machine.fma(0.0018671300495043397F, fraction, 0.009017030708491802F);
  value = machine.fma(value, fraction, 0.05579991266131401F);
  value = machine.fma(value, fraction, 0.24016444385051727F);
  value = machine.fma(value, fraction, 0.6931512951850891F);
  value = machine.fma(value, fraction, 1.0F);
  const uint32_t bits = (std::bit_cast<uint32_t>(shifted) << 23) + std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>(bits);
}

/// Running maximum of a row in log2 units, kept until it has grown by more than the threshold.
struct RowMax {
  float max;    // the one that P and O are relative to
  float scale;  // what O and the row sum must be multiplied with: 1 when it was kept
};

/// The decision behind lazy rescaling. `seen` is the maximum of all scores so far; the first block
/// of a piece has nothing to rescale (`before` is -inf and so is everything multiplied by scale 0).
template <CoreMachine Machine>
DEUCE_DEVICE RowMax update_row_max(Machine& machine, float before, float seen, float threshold) {
  constexpr float kNone = -__builtin_huge_valf();
  if (before == kNone) return {seen, seen == kNone ? 1.0F : 0.0F};
  const float grown = before - seen;  // <= 0
  if (grown >= -threshold) return {before, 1.0F};
  return {seen, machine.exp2(grown)};
}

}  // namespace deuce
