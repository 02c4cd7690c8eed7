// SPDX-License-Identifier: Apache-2.0
// Memory for one tensor that notices every access outside it: it ends at a page that may not be
// touched, what lies before it holds a pattern, and inputs are write-protected after filling.
// Used for every pointer that a test hands to the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace deuce::testing {

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  /// `lazy` leaves the memory to the system's zero pages and checks no band: for tensors beyond
  /// any real size, of which a few pages are touched.
  explicit GuardedBuffer(std::size_t bytes, std::size_t alignment = 16, bool lazy = false);
  ~GuardedBuffer();
  GuardedBuffer(GuardedBuffer&& other) noexcept { swap(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

  void freeze();              // no more writes
  void thaw();                // writes again
  bool bands_intact() const;  // nothing was written around the data

 private:
  void swap(GuardedBuffer& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(map_bytes_, other.map_bytes_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(lazy_, other.lazy_);
  }

  std::byte* map_ = nullptr;
  std::size_t map_bytes_ = 0;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool lazy_ = false;
};

}  // namespace deuce::testing
