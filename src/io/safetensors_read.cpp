// SPDX-License-Identifier: Apache-2.0
// Opening a safetensors file. It is read, not mapped: a file that another process cuts short while
// we compute would otherwise end this process by a bus error.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "io/safetensors.h"

namespace deuce::io {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::align_val_t kDataAlignment{64};

class FileDescriptor {
 public:
  /// Does not wait for a writer where the path is a pipe; a regular file is read as ever.
  explicit FileDescriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

/// False at the end of the file or on an error (errno 0 = end).
bool read_exactly(int file, void* target, std::size_t bytes) {
  auto* next = static_cast<char*>(target);
  while (bytes > 0) {
    errno = 0;
    const ssize_t got = ::read(file, next, std::min<std::size_t>(bytes, 1U << 30));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

Status read_failed(const std::string& path) {
  return invalid("file", "{}: cannot be read: {}", path,
                 errno == 0 ? "it became shorter meanwhile" : std::strerror(errno));
}

uint64_t little_endian_u64(const unsigned char (&bytes)[kLengthBytes]) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

Status check_length(const std::string& file, uint64_t header_bytes, uint64_t file_bytes) {
  if (header_bytes > kMaxHeaderBytes) {
    return invalid("file", "{}: header length {} is above the format's {}", file, header_bytes,
                   kMaxHeaderBytes);
  }
  if (header_bytes > file_bytes - kLengthBytes) {
    return invalid("file", "{}: header length {} is more than the {} bytes that follow it", file,
                   header_bytes, file_bytes - kLengthBytes);
  }
  return {};
}

Status too_short(const std::string& file, uint64_t bytes) {
  return invalid("file",
                 "{}: {} bytes are too few for a safetensors file (8 of header length first)", file,
                 bytes);
}

}  // namespace

void SafetensorsFile::Free::operator()(std::byte* data) const {
  ::operator delete(data, kDataAlignment);
}

SafetensorsFile::Storage SafetensorsFile::allocate(std::size_t bytes) {
  return Storage(static_cast<std::byte*>(::operator new(bytes, kDataAlignment, std::nothrow)));
}

SafetensorsFile::SafetensorsFile(std::string file, Header header, const std::byte* data)
    : file_(std::move(file)), metadata_(std::move(header.metadata)) {
  tensors_.reserve(header.tensors.size());
  for (TensorEntry& entry : header.tensors) {
    tensors_.push_back({std::move(entry.name), entry.type, std::move(entry.shape),
                        data + entry.begin, static_cast<std::size_t>(entry.end - entry.begin)});
  }
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  const FileDescriptor file(path);
  if (file.number() < 0)
    return invalid("file", "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat about {};
  if (::fstat(file.number(), &about) != 0) return read_failed(path);
  if (!S_ISREG(about.st_mode)) return invalid("file", "{}: is not a regular file", path);
  const auto file_bytes = static_cast<uint64_t>(about.st_size);
  if (file_bytes < kLengthBytes) return too_short(path, file_bytes);

  unsigned char length[kLengthBytes];
  if (!read_exactly(file.number(), length, kLengthBytes)) return read_failed(path);
  const uint64_t header_bytes = little_endian_u64(length);
  if (Status status = check_length(path, header_bytes, file_bytes); !status.ok()) return status;
  std::string json(header_bytes, '\0');
  if (!read_exactly(file.number(), json.data(), json.size())) return read_failed(path);

  const uint64_t data_bytes = file_bytes - kLengthBytes - header_bytes;
  Result<Header> header = parse_header(path, json, data_bytes);
  if (!header.ok()) return header.status();
  Storage storage = allocate(data_bytes);
  if (!storage) {
    return Status(DEUCE_RUNTIME_ERROR, "file",
                  fmt::format("{}: no memory for {} bytes", path, data_bytes));
  }
  if (!read_exactly(file.number(), storage.get(), data_bytes)) return read_failed(path);
  SafetensorsFile result(path, std::move(header.value()), storage.get());
  result.storage_ = std::move(storage);
  return result;
}

Result<SafetensorsFile> SafetensorsFile::view(const std::string& file,
                                              std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) return too_short(file, bytes.size());
  unsigned char length[kLengthBytes];
  std::memcpy(length, bytes.data(), kLengthBytes);
  const uint64_t header_bytes = little_endian_u64(length);
  if (Status status = check_length(file, header_bytes, bytes.size()); !status.ok()) return status;
  const std::span<const std::byte> rest = bytes.subspan(kLengthBytes);
  const std::string_view json(reinterpret_cast<const char*>(rest.data()), header_bytes);
  Result<Header> header = parse_header(file, json, rest.size() - header_bytes);
  if (!header.ok()) return header.status();
  return SafetensorsFile(file, std::move(header.value()), rest.data() + header_bytes);
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  for (const TensorView& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace deuce::io
