// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: refused with a sentence, or every promise of the reader holds.
#include <cstdlib>
#include <span>

#include "fuzz/fuzz_target.h"
#include "io/safetensors.h"
#include "io/safetensors_bytes.h"

namespace {

using deuce::io::SafetensorsFile;
using deuce::io::TensorView;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_promises(const SafetensorsFile& file, std::span<const std::byte> bytes) {
  const std::byte* end = bytes.data() + bytes.size();
  std::size_t total = 0;
  unsigned sum = 0;
  for (const TensorView& tensor : file.tensors()) {
    require(tensor.data >= bytes.data() + 8 && tensor.data <= end);
    require(tensor.bytes <= static_cast<std::size_t>(end - tensor.data));
    std::size_t elements = 1;
    for (const int64_t extent : tensor.shape) elements *= static_cast<std::size_t>(extent);
    require(elements * static_cast<std::size_t>(tensor_type_bytes(tensor.type)) == tensor.bytes);
    require(file.find(tensor.name) == &tensor);
    for (std::size_t i = 0; i < tensor.bytes; ++i) sum += static_cast<unsigned>(tensor.data[i]);
    total += tensor.bytes;
  }
  require(total <= bytes.size() && sum <= 255 * total);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes) {
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), bytes);
  const auto file = SafetensorsFile::view("fuzz", input);
  if (file.ok()) {
    check_promises(file.value(), input);
  } else {
    require(file.status().sentence().starts_with("fuzz: "));
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using deuce::io::file_bytes;
  return {
      file_bytes("{}", 0),
      file_bytes(R"({"q":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
      file_bytes(
          R"({"__metadata__":{"causal":"true"},"q":{"dtype":"BF16","shape":[1,2,2],)"
          R"("data_offsets":[0,8]},"kv_len":{"dtype":"I32","shape":[1],"data_offsets":[8,12]}})",
          12),
  };
}
