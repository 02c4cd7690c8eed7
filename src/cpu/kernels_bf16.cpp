// SPDX-License-Identifier: Apache-2.0
// The kernels for CPUs with AVX-512 BF16 (AMD from Zen 4, Intel from Cooper Lake and Sapphire
// Rapids on): the AVX-512 kernels once more, with dots-inl.h beside them. Highway 1.0 has no such
// target, so its AVX-512 target is compiled here with one more instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/kernels_bf16.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which sets the target for these:
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "cpu/kernels.h"
#include "kernel/numbers.h"

#if HWY_TARGET == HWY_AVX3
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace deuce::cpu {
namespace HWY_NAMESPACE {
namespace {

#include "cpu/simd_highway-inl.h"
// Order matters: the kernels use the operations above.
#include "cpu/kernels-inl.h"
#include "cpu/roof-inl.h"
// Order matters: beside the kernels.
#include "cpu/dots-inl.h"

}  // namespace

extern const Kernels kDotKernels;
const Kernels kDotKernels{"avx512_bf16", kLanes,
                          true,          convert_row,
                          place_query,   place_bf16_query,
                          begin,         attend_tile_with_dots,
                          take_row,      exp2_of_all_by_table,
                          read_lines,    multiply_adds};

}  // namespace HWY_NAMESPACE
}  // namespace deuce::cpu
HWY_POP_ATTRIBUTES
#endif

#if HWY_ONCE
namespace deuce::cpu {

const Kernels* dot_kernels() {
  const bool avx512 = __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16");
  return avx512 ? &N_AVX3::kDotKernels : nullptr;
}

}  // namespace deuce::cpu
#endif
