// SPDX-License-Identifier: Apache-2.0
// The tensors of one file as a command asks for them: by name, with the types and axes it accepts.
// What does not fit is refused by a sentence with both sides; what nobody asked for is refused too.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "io/safetensors.h"
#include "plan/status.h"

namespace deuce::cli {

/// An axis of a tensor that is asked for; extent -1 = any.
struct Axis {
  const char* name;
  int64_t extent = -1;
};

/// Memory that a converted or realigned tensor lives in.
using Owned = std::vector<std::shared_ptr<void>>;

class TensorSource {
 public:
  TensorSource(const io::SafetensorsFile& file, Owned& owned) : file_(file), owned_(owned) {}

  bool has(std::string_view name) const { return file_.find(name) != nullptr; }
  /// Refused when it is missing, of another type, or of another shape.
  Result<const io::TensorView*> take(const char* name, std::span<const io::TensorType> types,
                                     std::span<const Axis> axes);
  /// Elements aligned to their size: the file's own bytes, or a copy if they lie askew.
  const void* data(const io::TensorView& tensor);
  /// I32 as it is, I64 converted; a value outside 32 bits is refused.
  Result<const int32_t*> int32_data(const io::TensorView& tensor);
  /// Names a tensor that was never taken.
  Status refuse_unknown() const;
  /// A sentence about this file: "x.safetensors: ...".
  template <class... Args>
  Status refuse(std::string_view name, fmt::format_string<Args...> text, Args&&... args) const {
    return invalid(std::string(name), "{}: tensor '{}' {}", file_.file(), name,
                   fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  const io::SafetensorsFile& file_;
  Owned& owned_;
  std::vector<std::string_view> taken_;
};

/// "BF16 [2, 8, 64]".
std::string describe(const io::TensorView& tensor);

}  // namespace deuce::cli
