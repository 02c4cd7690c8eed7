// SPDX-License-Identifier: Apache-2.0
// Look-up, comparison with what was asked for, and the sentences when they differ.
#include "tensor_source.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace deuce::cli {
namespace {

/// Every name that a capture may hold; the list is shown when another one turns up.
constexpr std::array kKnown{
    "q",         "k",           "v",           "kv_len",       "kv_start",      "cu_q_len",
    "cache_row", "block_table", "page_indptr", "page_indices", "last_page_len", "sink",
    "q_scale",   "k_scale",     "v_scale"};

std::string axes_text(std::span<const Axis> axes) {
  std::string text = "[";
  for (const Axis& axis : axes) {
    if (text.size() > 1) text += ", ";
    text += axis.name;
    if (axis.extent >= 0 && axis.name != std::to_string(axis.extent))
      text += fmt::format(" = {}", axis.extent);
  }
  return text + "]";
}

std::string types_text(std::span<const io::TensorType> types) {
  std::string text;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (i > 0) text += i + 1 == types.size() ? " or " : ", ";
    text += io::tensor_type_name(types[i]);
  }
  return text;
}

bool fits(std::span<const int64_t> shape, std::span<const Axis> axes) {
  return std::equal(
      shape.begin(), shape.end(), axes.begin(), axes.end(),
      [](int64_t extent, const Axis& axis) { return axis.extent < 0 || axis.extent == extent; });
}

template <class T>
T* allocate(Owned& owned, std::size_t count) {
  const std::shared_ptr<T[]> memory(new T[std::max<std::size_t>(count, 1)]);
  owned.push_back(memory);
  return memory.get();
}

}  // namespace

std::string describe(const io::TensorView& tensor) {
  return fmt::format("{} {}", io::tensor_type_name(tensor.type), io::shape_text(tensor.shape));
}

Result<const io::TensorView*> TensorSource::take(const char* name,
                                                 std::span<const io::TensorType> types,
                                                 std::span<const Axis> axes) {
  const io::TensorView* tensor = file_.find(name);
  if (tensor == nullptr) {
    return refuse(name, "is missing: {} {} is needed", types_text(types), axes_text(axes));
  }
  taken_.push_back(tensor->name);
  const bool type_fits = std::find(types.begin(), types.end(), tensor->type) != types.end();
  if (!type_fits || !fits(tensor->shape, axes)) {
    return refuse(name, "is {}: it must be {} {}", describe(*tensor), types_text(types),
                  axes_text(axes));
  }
  for (const int64_t extent : tensor->shape) {
    if (extent > std::numeric_limits<int32_t>::max()) {
      return refuse(name, "is {}: an extent is above {}", describe(*tensor),
                    std::numeric_limits<int32_t>::max());
    }
  }
  return tensor;
}

const void* TensorSource::data(const io::TensorView& tensor) {
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  if (address % static_cast<unsigned>(io::tensor_type_bytes(tensor.type)) == 0) return tensor.data;
  auto* copy = allocate<std::max_align_t>(owned_, tensor.bytes / sizeof(std::max_align_t) + 1);
  std::memcpy(copy, tensor.data, tensor.bytes);
  return copy;
}

Result<const int32_t*> TensorSource::int32_data(const io::TensorView& tensor) {
  if (tensor.type == io::TensorType::i32) return static_cast<const int32_t*>(data(tensor));
  const std::size_t count = tensor.bytes / sizeof(int64_t);
  auto* copy = allocate<int32_t>(owned_, count);
  for (std::size_t i = 0; i < count; ++i) {
    int64_t value = 0;
    std::memcpy(&value, tensor.data + i * sizeof value, sizeof value);
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return refuse(tensor.name, "has {} as its element {}, which does not fit 32 bits", value, i);
    }
    copy[i] = static_cast<int32_t>(value);
  }
  return static_cast<const int32_t*>(copy);
}

Status TensorSource::refuse_unknown() const {
  for (const io::TensorView& tensor : file_.tensors()) {
    if (std::find(taken_.begin(), taken_.end(), tensor.name) != taken_.end()) continue;
    if (std::find(kKnown.begin(), kKnown.end(), tensor.name) != kKnown.end()) {
      return refuse(tensor.name, "has no meaning beside the other tensors of this file");
    }
    return invalid(tensor.name, "{}: tensor {} is not one that deuce run knows: {}", file_.file(),
                   io::quoted_name(tensor.name), fmt::join(kKnown, ", "));
  }
  return {};
}

}  // namespace deuce::cli
