// SPDX-License-Identifier: Apache-2.0
// The operations of simd_highway-inl.h in plain C++, on vectors of one block of four floats: the
// fall-back for any CPU, and the yardstick for the SIMD targets. exp2 is the library's.

struct Vec {
  float lane[4];
};

inline constexpr int kLanes = 4;
inline constexpr bool kUnrollSteps = false;  // nothing is kept in registers here

template <class Op>
inline Vec each_lane(const Op& op) {
  return {{op(0), op(1), op(2), op(3)}};
}

inline Vec load(const float* from) {
  return each_lane([&](int i) { return from[i]; });
}
inline void store(Vec value, float* to) { std::copy_n(value.lane, kLanes, to); }
inline Vec broadcast(float value) { return {{value, value, value, value}}; }
inline Vec mul(Vec a, Vec b) {
  return each_lane([&](int i) { return a.lane[i] * b.lane[i]; });
}
inline Vec mul_add(Vec a, Vec b, Vec c) {
  return each_lane([&](int i) { return a.lane[i] * b.lane[i] + c.lane[i]; });
}
inline Vec add(Vec a, Vec b) {
  return each_lane([&](int i) { return a.lane[i] + b.lane[i]; });
}
inline Vec sub(Vec a, Vec b) {
  return each_lane([&](int i) { return a.lane[i] - b.lane[i]; });
}
inline Vec divide(Vec a, Vec b) {
  return each_lane([&](int i) { return a.lane[i] / b.lane[i]; });
}
inline Vec max(Vec a, Vec b) {
  return each_lane([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
inline Vec abs(Vec a) {
  return each_lane([&](int i) { return std::fabs(a.lane[i]); });
}
inline Vec copy_sign(Vec magnitude, Vec sign) {
  return each_lane([&](int i) { return std::copysign(magnitude.lane[i], sign.lane[i]); });
}
inline Vec if_less(Vec a, Vec b, Vec yes, Vec no) {
  return each_lane([&](int i) { return a.lane[i] < b.lane[i] ? yes.lane[i] : no.lane[i]; });
}
inline Vec zero_if_no_key(Vec a) {
  return each_lane([&](int i) { return a.lane[i] == kNoKey ? 0.0F : a.lane[i]; });
}
inline bool all_at_most(Vec a, Vec b) {
  bool all = true;
  for (int i = 0; i < kLanes; ++i) all = all && a.lane[i] <= b.lane[i];
  return all;
}
inline Vec max_over_blocks(Vec v) { return v; }
inline Vec add_over_blocks(Vec v) { return v; }

inline float sum_of(Vec v) { return (v.lane[0] + v.lane[2]) + (v.lane[1] + v.lane[3]); }
inline void store_sums(Vec a, Vec b, Vec c, Vec d, float* to) {
  store({{sum_of(a), sum_of(b), sum_of(c), sum_of(d)}}, to);
}

inline Vec exp2(Vec x) {
  return each_lane([&](int i) { return x.lane[i] < -126.0F ? 0.0F : std::exp2(x.lane[i]); });
}

template <class Element>
inline Element element_at(const std::byte* from, int index) {
  Element element;
  std::memcpy(&element, from + index * static_cast<int>(sizeof(Element)), sizeof(Element));
  return element;
}

/// As in simd_highway-inl.h, with the same order of bf16 elements.
template <DType kType, int kHalf>
inline Vec load_half(const std::byte* step, Vec) {
  return each_lane([&](int i) {
    const int index = kHalf * kLanes + i;
    if constexpr (kType == DType::bf16) return to_float(element_at<Bf16>(step, index));
    if constexpr (kType == DType::f16) return to_float(element_at<Half>(step, index));
    return element_at<float>(step, index);
  });
}

/// Both formats pass through half precision: e5m2 is its upper byte, e4m3 differs in the exponent
/// bias by 8 and in its only NaN.
template <DType kType>
inline float fp8_to_float(unsigned bits) {
  if constexpr (kType == DType::e5m2) return to_float(Half{static_cast<uint16_t>(bits << 8)});
  const unsigned magnitude = bits & 0x7fu;
  const unsigned half = magnitude == 0x7fu ? 0x7e00u : magnitude << 7;
  return 256.0F * to_float(Half{static_cast<uint16_t>(((bits & 0x80u) << 8) | half)});
}
template <DType kType>
inline Vec load_fp8(const uint8_t* from) {
  return each_lane([&](int i) { return fp8_to_float<kType>(from[i]); });
}

inline void fetch(const std::byte*) {}
