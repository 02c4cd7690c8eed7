// SPDX-License-Identifier: Apache-2.0
// The kernels without SIMD: the same source over vectors of four plain floats. Runs on any CPU and
// is what the SIMD targets are compared with.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "cpu/kernels.h"
#include "kernel/numbers.h"

#define HWY_INLINE inline  // the kernels' word for "part of its caller", as Highway spells it

namespace deuce::cpu {
namespace scalar {
namespace {

#include "cpu/simd_scalar-inl.h"
// Order matters: the kernels use the operations above.
#include "cpu/kernels-inl.h"
#include "cpu/roof-inl.h"

constexpr Kernels kKernels{"scalar",    kLanes,   convert_row, place_query,  begin,
                           attend_tile, take_row, read_lines,  multiply_adds};

}  // namespace
}  // namespace scalar

const Kernels& scalar_kernels() { return scalar::kKernels; }

}  // namespace deuce::cpu
