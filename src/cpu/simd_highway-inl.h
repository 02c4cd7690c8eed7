// SPDX-License-Identifier: Apache-2.0
// Vector operations on Highway, for the target that is being compiled. kernels-inl.h is written
// over these names alone; simd_scalar-inl.h offers the same ones without vectors.
// A vector is a row of 128-bit blocks of four floats; what differs between instruction sets is the
// number of blocks.

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Shorts = hn::Repartition<uint16_t, Floats>;  // twice the lanes
using Vec = hn::Vec<Floats>;

inline constexpr int kLanes = HWY_LANES(float);
inline constexpr bool kUnrollSteps = true;
inline constexpr Floats kFloats;
inline constexpr Words kWords;
inline constexpr Shorts kShorts;

HWY_INLINE Vec load(const float* from) { return hn::LoadU(kFloats, from); }
HWY_INLINE void store(Vec value, float* to) { hn::StoreU(value, kFloats, to); }
HWY_INLINE Vec broadcast(float value) { return hn::Set(kFloats, value); }
HWY_INLINE Vec mul(Vec a, Vec b) { return hn::Mul(a, b); }
HWY_INLINE Vec mul_add(Vec a, Vec b, Vec c) { return hn::MulAdd(a, b, c); }
HWY_INLINE Vec add(Vec a, Vec b) { return hn::Add(a, b); }
HWY_INLINE Vec sub(Vec a, Vec b) { return hn::Sub(a, b); }
HWY_INLINE Vec divide(Vec a, Vec b) { return hn::Div(a, b); }
HWY_INLINE Vec max(Vec a, Vec b) { return hn::Max(a, b); }
HWY_INLINE Vec abs(Vec a) { return hn::Abs(a); }
HWY_INLINE Vec copy_sign(Vec magnitude, Vec sign) { return hn::CopySign(magnitude, sign); }
/// The vector with 0 in place of -inf.
HWY_INLINE Vec zero_if_no_key(Vec a) {
  return hn::IfThenZeroElse(hn::Eq(a, hn::Set(kFloats, kNoKey)), a);
}
/// `yes` where a < b, else `no`.
HWY_INLINE Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
  return hn::IfThenElse(hn::Lt(a, b), yes, no);
}
/// Whether a <= b in every lane; false with a NaN.
HWY_INLINE bool all_at_most(Vec a, Vec b) { return hn::AllTrue(kFloats, hn::Le(a, b)); }

HWY_INLINE Vec max_over_blocks(Vec v) {
  if constexpr (kLanes == 16) v = hn::Max(v, hn::ConcatLowerUpper(kFloats, v, v));
  if constexpr (kLanes >= 8) v = hn::Max(v, hn::SwapAdjacentBlocks(v));
  return v;
}
HWY_INLINE Vec add_over_blocks(Vec v) {
  if constexpr (kLanes == 16) v = hn::Add(v, hn::ConcatLowerUpper(kFloats, v, v));
  if constexpr (kLanes >= 8) v = hn::Add(v, hn::SwapAdjacentBlocks(v));
  return v;
}

/// Stores the lowest block.
template <class V>
HWY_INLINE void store_block(V v, float* to) {
  const hn::DFromV<V> lanes;
  if constexpr (hn::MaxLanes(lanes) > kGroupRows) {
    store_block(hn::LowerHalf(v), to);
  } else {
    hn::StoreU(v, lanes, to);
  }
}

/// Stores the four sums over all lanes.
HWY_INLINE void store_sums(Vec a, Vec b, Vec c, Vec d, float* to) {
  const hn::Repartition<double, Floats> pairs;
  const Vec ab = hn::Add(hn::InterleaveLower(kFloats, a, b), hn::InterleaveUpper(kFloats, a, b));
  const Vec cd = hn::Add(hn::InterleaveLower(kFloats, c, d), hn::InterleaveUpper(kFloats, c, d));
  const auto ab_pairs = hn::BitCast(pairs, ab), cd_pairs = hn::BitCast(pairs, cd);
  const Vec low = hn::BitCast(kFloats, hn::InterleaveLower(pairs, ab_pairs, cd_pairs));
  const Vec high = hn::BitCast(kFloats, hn::InterleaveUpper(pairs, ab_pairs, cd_pairs));
  store_block(add_over_blocks(hn::Add(low, high)), to);
}

/// 2^x for x <= 127; 0 below the normal range and for -inf; NaN stays. Relative error below 2^-23:
/// a polynomial of degree 6 for the fraction in [-1/2, 1/2] (Remez, relative error, exact at 0).
/// Adding `kRound` rounds to an integer and leaves it, biased as an exponent, in the lowest bits.
HWY_INLINE Vec exp2(Vec x) {
  static constexpr float kRound = 0x1.8p23F + 127;
  const Vec rounded = hn::Add(x, hn::Set(kFloats, kRound));
  const Vec f = hn::Sub(x, hn::Sub(rounded, hn::Set(kFloats, kRound)));
  Vec p = hn::Set(kFloats, 0.00015594678F);
  p = hn::MulAdd(p, f, hn::Set(kFloats, 0.0013406643F));
  p = hn::MulAdd(p, f, hn::Set(kFloats, 0.009617693F));
  p = hn::MulAdd(p, f, hn::Set(kFloats, 0.055503104F));
  p = hn::MulAdd(p, f, hn::Set(kFloats, 0.24022653F));
  p = hn::MulAdd(p, f, hn::Set(kFloats, 0.69314724F));
  p = hn::MulAdd(p, f, hn::Set(kFloats, 1.0F));
  const Vec scale = hn::BitCast(kFloats, hn::ShiftLeft<23>(hn::BitCast(kWords, rounded)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(kFloats, -126.0F)), hn::Mul(p, scale));
}

/// Half `kHalf` of a step of 2 * kLanes cache elements as floats. Which elements they are depends
/// on the type, see first_element(): bf16 takes the cheapest way, zeros interleaved below the
/// 16-bit words, one instruction with its load folded in.
template <DType kType, int kHalf>
HWY_INLINE Vec load_half(const std::byte* step, Vec zero) {
  if constexpr (kType == DType::bf16) {
    const auto words = hn::LoadU(kShorts, reinterpret_cast<const uint16_t*>(step));
    const auto below = hn::BitCast(kShorts, zero);
    return hn::BitCast(kFloats, kHalf == 0 ? hn::InterleaveLower(kShorts, below, words)
                                           : hn::InterleaveUpper(kShorts, below, words));
  } else if constexpr (kType == DType::f16) {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    const auto* from = reinterpret_cast<const hwy::float16_t*>(step) + kHalf * kLanes;
    return hn::PromoteTo(kFloats, hn::LoadU(halves, from));
  } else {
    return load(reinterpret_cast<const float*>(step) + kHalf * kLanes);
  }
}

/// kLanes fp8 elements as floats. Both formats pass through half precision: e5m2 is its upper byte,
/// e4m3 differs in the exponent bias by 8 and in its only NaN.
template <DType kType>
HWY_INLINE Vec load_fp8(const uint8_t* from) {
  const hn::Rebind<uint8_t, Floats> bytes;
  const hn::Rebind<uint16_t, Floats> shorts;
  const hn::Rebind<hwy::float16_t, Floats> halves;
  const auto x = hn::PromoteTo(shorts, hn::LoadU(bytes, from));
  if constexpr (kType == DType::e5m2) {
    return hn::PromoteTo(kFloats, hn::BitCast(halves, hn::ShiftLeft<8>(x)));
  } else {
    const auto magnitude = hn::And(x, hn::Set(shorts, 0x7f));
    const auto sign = hn::ShiftLeft<8>(hn::And(x, hn::Set(shorts, 0x80)));
    const auto nan = hn::VecFromMask(shorts, hn::Eq(magnitude, hn::Set(shorts, 0x7f)));
    const auto bits =
        hn::Or(hn::Or(sign, hn::ShiftLeft<7>(magnitude)), hn::And(nan, hn::Set(shorts, 0x7e00)));
    return hn::Mul(hn::PromoteTo(kFloats, hn::BitCast(halves, bits)), hn::Set(kFloats, 256.0F));
  }
}

HWY_INLINE void fetch(const std::byte* line) { fetch_line(line); }
