// SPDX-License-Identifier: Apache-2.0
// cuTensorMapEncodeTiled without a link to libcuda: the library loads on machines with no driver.
#include "gpu/tensor_map.h"

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <cstring>

#include "gpu/cuda_status.h"

namespace deuce {
namespace {

struct Encoder {
  PFN_cuTensorMapEncodeTiled_v12000 encode_tiled;
};

Result<Encoder> find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                             12000, cudaEnableDefault, &found);
  if (error != cudaSuccess) return cuda_status(error, "cudaGetDriverEntryPointByVersion");
  if (found != cudaDriverEntryPointSuccess || function == nullptr) {
    return Status{DEUCE_RUNTIME_ERROR, "", "the CUDA driver has no cuTensorMapEncodeTiled"};
  }
  return Encoder{reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)};
}

CUtensorMapDataType data_type(const TensorMapSpec& spec) {
  if (spec.element_bytes == 1) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (spec.element_bytes == 4) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return spec.bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

CUtensorMapSwizzle swizzle_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::bytes32: return CU_TENSOR_MAP_SWIZZLE_32B;
    case Swizzle::bytes64: return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::bytes128: return CU_TENSOR_MAP_SWIZZLE_128B;
    case Swizzle::none: break;
  }
  return CU_TENSOR_MAP_SWIZZLE_NONE;
}

}  // namespace

Status encode_tensor_map(const TensorMapSpec& spec, TensorMap& map) {
  static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));
  static const Result<Encoder> encoder = find_encoder();
  if (!encoder.ok()) return encoder.status();
  if (const char* fault = spec.fault(); fault != nullptr) {
    return {DEUCE_RUNTIME_ERROR, "", fmt::format("tensor map: {}", fault)};
  }
  const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
  alignas(64) CUtensorMap encoded;
  const CUresult result = encoder.value().encode_tiled(
      &encoded, data_type(spec), static_cast<cuuint32_t>(spec.rank), const_cast<void*>(spec.base),
      reinterpret_cast<const cuuint64_t*>(spec.extent.data()),
      reinterpret_cast<const cuuint64_t*>(spec.stride_bytes.data()), spec.box.data(), ones,
      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(spec.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    return {DEUCE_RUNTIME_ERROR, "",
            fmt::format("cuTensorMapEncodeTiled failed with code {}", static_cast<int>(result))};
  }
  std::memcpy(&map, &encoded, sizeof(map));
  return {};
}

}  // namespace deuce
