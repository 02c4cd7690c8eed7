// SPDX-License-Identifier: Apache-2.0
// Anonymous mapping: [band .. data, band][page without access]. The first band is a page at least.
#include "support/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace deuce::testing {
namespace {

constexpr auto kBand = std::byte{0xB5};
constexpr std::size_t kPage = 4096;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes, std::size_t alignment, bool lazy)
    : bytes_(bytes), lazy_(lazy) {
  const std::size_t inner = kPage + round_up(round_up(bytes, alignment), kPage);
  map_bytes_ = inner + kPage;
  void* map = mmap(nullptr, map_bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    std::perror("mmap of a test buffer");
    std::abort();
  }
  map_ = static_cast<std::byte*>(map);
  data_ = map_ + inner - round_up(bytes, alignment);
  if (!lazy) std::fill(map_, map_ + inner, kBand);
  mprotect(map_ + inner, kPage, PROT_NONE);
}

GuardedBuffer::~GuardedBuffer() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
}

void GuardedBuffer::freeze() { mprotect(map_, map_bytes_ - kPage, PROT_READ); }

void GuardedBuffer::thaw() { mprotect(map_, map_bytes_ - kPage, PROT_READ | PROT_WRITE); }

bool GuardedBuffer::bands_intact() const {
  if (lazy_ || map_ == nullptr) return true;
  const auto is_band = [](std::byte value) { return value == kBand; };
  return std::all_of(map_, data_, is_band) &&
         std::all_of(data_ + bytes_, map_ + map_bytes_ - kPage, is_band);
}

}  // namespace deuce::testing
