// SPDX-License-Identifier: Apache-2.0
// exp2 partly by polynomial, as FlashAttention-4 does: the special-function unit is the narrowest
// pipe of a decode kernel, the FMA pipe has room. Used by softmax warps with rows in registers.
// Which elements are emulated depends on the shape alone: never on masks, batch or slot count.
#pragma once

#include <bit>
#include <cstdint>

#include "kernel/combine.h"
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

/// The reference maximum of a row moves only when a score exceeds it by 2^8: P stays below some
/// 300, which fp16 holds, and the output is rescaled a few times per row instead of once per tile.
inline constexpr float kRescaleThreshold = 8.0F;

/// Has `seen`, the largest score so far, outgrown the reference maximum `max`? Both are scores, not
/// yet in log2 units (`scale` brings them there): far from zero two scores that are whole powers of
/// two apart may round to the same product. Keyless rows never outgrow anything, as
/// -inf - (-inf) is NaN.
DEUCE_DEVICE constexpr bool outgrows(float seen, float max, float scale) {
  return (seen - max) * scale > kRescaleThreshold;
}

/// Beyond this offset, in log2 units, its rounding moves every exponent of the row by 1/4 and more;
/// from 2^31 on the rounding alone exceeds the range of exp2. Such a row takes the difference of
/// the scores first, which is exact for those near the maximum, and has no offset.
inline constexpr float kFar = 0x1p22F;

DEUCE_DEVICE constexpr bool is_far(float offset) { return offset > kFar || offset < -kFar; }

/// A score in log2 units, rounded once: a kernel may not contract the product with what follows.
template <CoreMachine Machine>
DEUCE_DEVICE float log2_of(Machine& machine, float score, float scale) {
  return machine.fma(score, scale, 0.0F);
}

/// The decision behind lazy rescaling. `max` is the score that P, O and the row sum are relative
/// to: to its rounded product with the scale, or in far rows to itself; `seen`, the largest so far,
/// takes its place if it has outgrown it. Returns what O and the sum must be multiplied with: 1
/// when `max` was kept; 0 for the first block with a key of a piece, which has nothing to rescale.
template <CoreMachine Machine>
DEUCE_DEVICE float raise_maximum(Machine& machine, float& max, float seen, float scale) {
  const float before = max;
  if (before == kNoKey) {
    max = seen;
    return seen == kNoKey ? 1.0F : 0.0F;
  }
  if (!outgrows(seen, before, scale)) return 1.0F;
  max = seen;
  const float from = log2_of(machine, before, scale), to = log2_of(machine, seen, scale);
  return machine.exp2(is_far(from) || is_far(to) ? (before - seen) * scale : from - to);
}

/// The maximum of a row as its state has it.
template <CoreMachine Machine>
DEUCE_DEVICE float max_log2_of(Machine& machine, float max, float scale) {
  return max == kNoKey ? kNoKey : log2_of(machine, max, scale);
}

/// What is added to scores in log2 units: minus the maximum, nothing for a row without a key.
template <CoreMachine Machine>
DEUCE_DEVICE float offset_of(Machine& machine, float max, float scale) {
  return max == kNoKey ? 0.0F : -log2_of(machine, max, scale);
}

}  // namespace deuce
