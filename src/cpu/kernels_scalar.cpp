// SPDX-License-Identifier: Apache-2.0
// The kernels without SIMD: the same source over vectors of four plain floats. Runs on any CPU and
// is what the SIMD targets are compared with.
#include <hwy/base.h>  // HWY_INLINE

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "cpu/kernels.h"
#include "kernel/numbers.h"

namespace deuce::cpu {
namespace scalar {
namespace {

#include "cpu/simd_scalar-inl.h"
// Order matters: the kernels use the operations above.
#include "cpu/kernels-inl.h"
#include "cpu/roof-inl.h"

constexpr Kernels kKernels{"scalar",    kLanes,      false,      convert_row,
                           place_query, nullptr,     begin,      attend_tile,
                           take_row,    exp2_of_all, read_lines, multiply_adds};

}  // namespace
}  // namespace scalar

const Kernels& scalar_kernels() { return scalar::kKernels; }

}  // namespace deuce::cpu
