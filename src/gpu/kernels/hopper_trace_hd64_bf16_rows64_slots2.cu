// SPDX-License-Identifier: Apache-2.0
#include "gpu/hopper_trace_launch.cuh"
namespace deuce::hopper {
template TracedFunctions traced_functions<18>(trace::Level);
template TracedFunctions traced_functions<18 + kFixedBorders>(trace::Level);
}  // namespace deuce::hopper
