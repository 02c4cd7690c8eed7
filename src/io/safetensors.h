// SPDX-License-Identifier: Apache-2.0
// Reader and writer of safetensors files: 8 bytes of header length (little endian), a JSON header,
// then the tensors back to back. Used by `deuce run`, the tests and the fuzz target.
// Holds always: a tensor handed out lies inside the data that was read, has exactly the bytes its
// dtype and shape ask for, and overlaps no other. A file that says otherwise is refused whole, by a
// sentence that names the file and the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/tensor_type.h"
#include "plan/status.h"

namespace deuce::io {

/// Longest header the format allows, bytes.
inline constexpr uint64_t kMaxHeaderBytes = 100'000'000;

/// A tensor by name; `data` is borrowed and aligned as the file happens to place it.
struct TensorView {
  std::string name;
  TensorType type{};
  std::vector<int64_t> shape;  // row major, outermost first; empty = a scalar
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};

using Metadata = std::map<std::string, std::string>;

/// What a header promises about the data section; offsets count from its first byte.
struct TensorEntry {
  std::string name;
  TensorType type{};
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};
struct Header {
  std::vector<TensorEntry> tensors;  // in file order
  Metadata metadata;
};

/// Reads and checks the JSON text against a data section of `data_bytes`; `file` only names it.
Result<Header> parse_header(const std::string& file, std::string_view json, uint64_t data_bytes);

/// Dimensions as "[2, 3]"; long lists are cut.
std::string shape_text(std::span<const int64_t> shape);
/// A name from a file made safe to print: control bytes replaced, cut at 64 bytes, in quotes.
std::string quoted_name(std::string_view name);

/// A whole file in memory. Tensors point into it and live as long as it does.
class SafetensorsFile {
 public:
  /// Reads a regular file; nothing of it is used before every check has passed.
  static Result<SafetensorsFile> open(const std::string& path);
  /// The same checks over bytes of the caller, which must outlive the result.
  static Result<SafetensorsFile> view(const std::string& file, std::span<const std::byte> bytes);

  const std::string& file() const { return file_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }
  /// nullptr when the file has no tensor of that name.
  const TensorView* find(std::string_view name) const;

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  using Storage = std::unique_ptr<std::byte, Free>;
  static Storage allocate(std::size_t bytes);
  SafetensorsFile(std::string file, Header header, const std::byte* data);

  std::string file_;
  Storage storage_;  // the data section, 64-byte aligned; empty for view()
  std::vector<TensorView> tensors_;
  Metadata metadata_;
};

/// Writes the tensors so that the same input always gives the same bytes: largest element type
/// first (each tensor is then aligned to its elements), by name within a type, metadata by key.
/// A regular file appears only once it is complete.
Status write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                         const Metadata& metadata = {});

}  // namespace deuce::io
