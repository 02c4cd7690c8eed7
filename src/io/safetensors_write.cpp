// SPDX-License-Identifier: Apache-2.0
// Writing a safetensors file. What is written is checked by the reader's own rules first.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "io/safetensors_layout.h"

namespace deuce::io {
namespace {

/// The data section begins at a multiple of this, so that a mapped file is aligned.
constexpr std::size_t kDataAlignment = 64;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

/// Pointers to the tensors in the order they are written.
std::vector<const TensorView*> file_order(std::span<const TensorView> tensors) {
  std::vector<const TensorView*> order;
  order.reserve(tensors.size());
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    const int a_bytes = tensor_type_bytes(a->type), b_bytes = tensor_type_bytes(b->type);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a->name < b->name;
  });
  return order;
}

/// Header text, padded with spaces; refuses what the reader would refuse.
Result<std::string> header_text(const std::string& path, std::span<const TensorView* const> order,
                                const Metadata& metadata) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorView* tensor : order) {
    const TensorEntry entry{tensor->name, tensor->type, tensor->shape, offset,
                            offset + tensor->bytes};
    if (Status status = check_entry(path, entry, entry.end); !status.ok()) return status;
    if (tensor->name == "__metadata__" || json.contains(tensor->name)) {
      return invalid(tensor->name, "{}: tensor name {} is taken", path, quoted_name(tensor->name));
    }
    json[tensor->name] = {{"dtype", tensor_type_name(tensor->type)},
                          {"shape", tensor->shape},
                          {"data_offsets", {entry.begin, entry.end}}};
    offset = entry.end;
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception&) {
    return invalid("file", "{}: a name or metadata value is not UTF-8", path);
  }
  while ((sizeof(uint64_t) + text.size()) % kDataAlignment != 0) text += ' ';
  return text;
}

bool write_all(std::FILE* file, const std::string& header,
               std::span<const TensorView* const> order) {
  unsigned char length[8];
  for (std::size_t i = 0; i < 8; ++i)
    length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
  const auto put = [file](const void* data, std::size_t bytes) {
    return bytes == 0 || std::fwrite(data, 1, bytes, file) == bytes;
  };
  bool good = put(length, sizeof length) && put(header.data(), header.size());
  for (const TensorView* tensor : order) good = good && put(tensor->data, tensor->bytes);
  return good;
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                         const Metadata& metadata) {
  const std::vector<const TensorView*> order = file_order(tensors);
  const Result<std::string> header = header_text(path, order, metadata);
  if (!header.ok()) return header.status();

  const auto failed = [&path](const char* what) {
    return Status(DEUCE_RUNTIME_ERROR, "file",
                  fmt::format("{}: cannot be {}: {}", path, what, std::strerror(errno)));
  };
  // Devices and pipes are written in place; a regular file takes its name when it is complete.
  struct stat about {};
  const bool in_place = ::stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
  const std::string target = in_place ? path : path + ".partial";
  File file(std::fopen(target.c_str(), "wbe"));
  if (!file) return failed("created");
  const bool written = write_all(file.get(), header.value(), order);
  const bool closed = std::fclose(file.release()) == 0;
  if (!written || !closed) {
    Status status = failed("written");
    if (!in_place) std::remove(target.c_str());
    return status;
  }
  if (!in_place && std::rename(target.c_str(), path.c_str()) != 0) {
    Status status = failed("put in place");
    std::remove(target.c_str());
    return status;
  }
  return {};
}

}  // namespace deuce::io
