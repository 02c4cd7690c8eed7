// SPDX-License-Identifier: Apache-2.0
// What a run left in an Instance: bits by logical place, and violations of the frame.
#include <fmt/format.h>

#include <cstring>

#include "support/content.h"
#include "support/instance.h"

namespace deuce::testing {
namespace {

uint32_t element_at(const GuardedBuffer& buffer, int64_t offset, int64_t bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, buffer.data() + offset * bytes, static_cast<std::size_t>(bytes));
  return bits;
}

}  // namespace

std::vector<uint32_t> Instance::bits(const GuardedBuffer& buffer, const int64_t (&stride)[3],
                                     int64_t columns, int32_t dtype) const {
  std::vector<uint32_t> values;
  for_each_row([&](int64_t request, int64_t row, int64_t head) {
    const int64_t offset = row_offset(stride, request, row, head);
    for (int64_t c = 0; c < columns; ++c) {
      values.push_back(element_at(buffer, offset + c, element_bytes(dtype)));
    }
  });
  return values;
}

std::vector<uint32_t> Instance::output_bits() const {
  return bits(buffers_[out_], args.out_stride, case_.head_dim_v, case_.out_dtype);
}

std::vector<uint32_t> Instance::lse_bits() const {
  if (case_.lse == LseWish::none) return {};
  return bits(buffers_[lse_], args.lse_stride, 1, DEUCE_F32);
}

std::string Instance::check_written(const char* name, const GuardedBuffer& buffer,
                                    const int64_t (&stride)[3], int64_t columns,
                                    int32_t dtype) const {
  const int64_t bytes = element_bytes(dtype);
  const auto elements = static_cast<int64_t>(buffer.bytes()) / bytes;
  std::vector<bool> is_result(elements, false);
  for_each_row([&](int64_t request, int64_t row, int64_t head) {
    const int64_t offset = row_offset(stride, request, row, head);
    for (int64_t c = 0; c < columns; ++c) is_result[offset + c] = true;
  });
  for (int64_t i = 0; i < elements; ++i) {
    const bool is_prefill = element_at(buffer, i, bytes) == prefill_bits(dtype);
    if (is_result[i] && is_prefill) return fmt::format("{}[{}] was not written", name, i);
    if (!is_result[i] && !is_prefill) {
      return fmt::format("{}[{}] lies between the results but was written", name, i);
    }
  }
  return {};
}

std::string Instance::frame_violation() const {
  std::string text =
      check_written("out", buffers_[out_], args.out_stride, case_.head_dim_v, case_.out_dtype);
  if (text.empty() && case_.lse != LseWish::none) {
    text = check_written("lse", buffers_[lse_], args.lse_stride, 1, DEUCE_F32);
  }
  for (std::size_t i = 0; i < buffers_.size() && text.empty(); ++i) {
    if (!buffers_[i].bands_intact()) text = fmt::format("wrote beside buffer {}", i);
  }
  return text;
}

void Instance::thaw() {
  for (GuardedBuffer& buffer : buffers_) buffer.thaw();
}

bool Instance::results_untouched() const {
  const auto untouched = [](const GuardedBuffer& buffer, int32_t dtype) {
    const int64_t bytes = element_bytes(dtype);
    for (int64_t i = 0; i < static_cast<int64_t>(buffer.bytes()) / bytes; ++i) {
      if (element_at(buffer, i, bytes) != prefill_bits(dtype)) return false;
    }
    return buffer.bands_intact();
  };
  return untouched(buffers_[out_], case_.out_dtype) &&
         (case_.lse == LseWish::none || untouched(buffers_[lse_], DEUCE_F32));
}

}  // namespace deuce::testing
