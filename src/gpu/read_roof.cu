// SPDX-License-Identifier: Apache-2.0
// Read-only kernels of read_roof.h, on the same machine operations as the product's kernels.
#include "gpu/read_roof.h"

#include <utility>

#include "gpu/sm90_machine.cuh"
#include "kernel/hopper/load.h"
#include "plan/hopper_shapes.h"

namespace deuce::hopper {
namespace {

/// Waits for every tile of the CTA's stretch and gives it back at once.
template <Config kConfig, class Machine>
__device__ void drain(Machine& machine, SharedStorage<kConfig>& shared,
                      Schedule<kConfig, Machine>& schedule) {
  auto ring = Ring<kConfig.stages>::consumer();
  Piece piece;
  while (schedule.next(piece)) {
    for (int tile = 0; tile < piece.tiles; ++tile) {
      machine.wait(shared.k_arrived[ring.slot()], ring.phase());
      machine.wait(shared.v_arrived[ring.slot()], ring.phase());
      if (machine.elect()) machine.arrive(shared.kv_released[ring.slot()]);
      ring.advance();
    }
  }
}

template <int kShape>
__global__ void __launch_bounds__(96, 1) tile_roof(const __grid_constant__ Params params) {
  constexpr Config kConfig = kShapes[kShape];
  Sm90Machine machine(threadIdx.x, blockIdx.x, gridDim.x);
  auto& shared = machine.shared<SharedStorage<kConfig>>();
  const int warp = machine.warp();
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < kConfig.stages; ++slot) {
      machine.init(shared.k_arrived[slot], 1);
      machine.init(shared.v_arrived[slot], 1);
      machine.init(shared.kv_released[slot], 1);
    }
    machine.fence_barrier_init();
  }
  Schedule<kConfig, Sm90Machine> schedule(machine, params);
  machine.sync_block();
  if (warp < 2) {
    Load<kConfig, Sm90Machine>(machine, shared, params, warp == 1).run(schedule);
  } else {
    drain<kConfig>(machine, shared, schedule);
  }
}

template <int kShape>
cudaError_t launch_roof_of(const Params& params, int workers, cudaStream_t stream) {
  constexpr std::size_t kBytes = sizeof(SharedStorage<kShapes[kShape]>);
  // Each time: the attribute belongs to the device at hand.
  const cudaError_t prepared =
      cudaFuncSetAttribute(tile_roof<kShape>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (prepared != cudaSuccess) return prepared;
  tile_roof<kShape><<<workers, 96, kBytes, stream>>>(params);
  return cudaGetLastError();
}

constexpr int kChunk = 16384, kChunks = 8;

__global__ void __launch_bounds__(64, 1) linear_roof(const unsigned char* data, int64_t chunks) {
  extern __shared__ __align__(1024) unsigned char tiles[];
  __shared__ Barrier arrived[kChunks], released[kChunks];
  Sm90Machine machine(threadIdx.x, blockIdx.x, gridDim.x);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kChunks; ++i) {
      machine.init(arrived[i], 1);
      machine.init(released[i], 1);
    }
    machine.fence_barrier_init();
  }
  machine.sync_block();
  const int64_t begin = chunks * blockIdx.x / gridDim.x,
                end = chunks * (blockIdx.x + 1) / gridDim.x;
  if (threadIdx.x == 0) {
    auto ring = Ring<kChunks>::producer();
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      machine.wait(released[ring.slot()], ring.phase());
      machine.arrive_expect(arrived[ring.slot()], kChunk);
      machine.copy_bulk(tiles + ring.slot() * kChunk, data + chunk * kChunk, kChunk,
                        arrived[ring.slot()]);
      ring.advance();
    }
  } else if (threadIdx.x == 32) {
    auto ring = Ring<kChunks>::consumer();
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      machine.wait(arrived[ring.slot()], ring.phase());
      machine.arrive(released[ring.slot()]);
      ring.advance();
    }
  }
}

__global__ void empty() {}

using RoofLauncher = cudaError_t (*)(const Params&, int, cudaStream_t);

}  // namespace

cudaError_t launch_tile_roof(const TileRoof& roof, cudaStream_t stream) {
  return [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    constexpr RoofLauncher kLaunchers[]{launch_roof_of<kIndex>...};
    return kLaunchers[roof.shape](roof.params, roof.workers, stream);
  }
  (std::make_integer_sequence<int, kFixedBorders>{});
}

cudaError_t launch_linear_roof(const void* data, int64_t bytes, int workers, cudaStream_t stream) {
  const cudaError_t prepared = cudaFuncSetAttribute(
      linear_roof, cudaFuncAttributeMaxDynamicSharedMemorySize, kChunk * kChunks);
  if (prepared != cudaSuccess) return prepared;
  linear_roof<<<workers, 64, kChunk * kChunks, stream>>>(static_cast<const unsigned char*>(data),
                                                         bytes / kChunk);
  return cudaGetLastError();
}

cudaError_t launch_empty(int workers, cudaStream_t stream) {
  empty<<<workers, 192, 0, stream>>>();
  return cudaGetLastError();
}

}  // namespace deuce::hopper
