// SPDX-License-Identifier: Apache-2.0
// Random caches made on the device, where a copy from the host would take longer than the bench.
#include "fill.h"

#include "deuce/deuce.h"

namespace deuce::bench {
namespace {

__device__ uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

__global__ void fill(uint32_t* words, int64_t count, uint32_t random_bits, uint32_t fixed_bits,
                     uint32_t seed) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    words[i] = (mix(static_cast<uint32_t>(i) * 2654435761u + seed) & random_bits) | fixed_bits;
  }
}

}  // namespace

cudaError_t fill_random(void* data, int64_t bytes, int32_t dtype, uint32_t seed,
                        cudaStream_t stream) {
  uint32_t random_bits = 0x80ff80ffu, fixed_bits = 0x3f003f00u;  // bf16
  if (dtype == DEUCE_F16) random_bits = 0x87ff87ffu, fixed_bits = 0x38003800u;
  if (dtype == DEUCE_E4M3) random_bits = 0x8f8f8f8fu, fixed_bits = 0x30303030u;
  fill<<<1056, 512, 0, stream>>>(static_cast<uint32_t*>(data), bytes / 4, random_bits, fixed_bits,
                                 seed);
  return cudaGetLastError();
}

}  // namespace deuce::bench
