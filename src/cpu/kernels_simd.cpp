// SPDX-License-Identifier: Apache-2.0
// The kernels on Highway: this file compiles itself once per instruction set (foreach_target.h) and
// then lists those that the CPU has. Highway's own dispatch would need libhwy, which Debian ships
// as a shared library only, so the choice is made here from the CPU's feature bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_simd.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target for these:
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "cpu/kernels.h"
#include "kernel/numbers.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace deuce::cpu {
namespace HWY_NAMESPACE {
namespace {

#include "cpu/simd_highway-inl.h"
// Order matters: the kernels use the operations above.
#include "cpu/kernels-inl.h"
#include "cpu/roof-inl.h"

}  // namespace

constexpr const char* kName = HWY_TARGET == HWY_AVX2   ? "avx2"
                              : HWY_TARGET == HWY_AVX3 ? "avx512"
                                                       : "neon";
extern const Kernels kKernels;
const Kernels kKernels{kName, kLanes,      false,    convert_row, place_query, nullptr,
                       begin, attend_tile, take_row, exp2_of_all, read_lines,  multiply_adds};

}  // namespace HWY_NAMESPACE
}  // namespace deuce::cpu
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
#if HWY_ARCH_X86_64
#include <cpuid.h>
#endif

namespace deuce::cpu {
namespace {

#if HWY_ARCH_X86_64
/// Conversion of halves; not every compiler that we build with knows this one by name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

std::span<const Kernels* const> simd_kernels() {
  static const std::vector<const Kernels*> list = [] {
    std::vector<const Kernels*> found;
#if HWY_ARCH_X86_64
    // What the compiler may use inside Highway's AVX2 and AVX-512 regions; the operating system's
    // support for the wide registers is part of the answer.
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      has_f16c() && __builtin_cpu_supports("bmi") &&
                      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") &&
                      __builtin_cpu_supports("pclmul");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
    if (avx512) found.push_back(&N_AVX3::kKernels);
    if (avx2) found.push_back(&N_AVX2::kKernels);
#elif HWY_ARCH_ARM_A64
    found.push_back(&N_NEON::kKernels);
#endif
    return found;
  }();
  return list;
}

}  // namespace deuce::cpu
#endif
