// SPDX-License-Identifier: Apache-2.0
// Fetcher deals out every line of the next tile and nothing far from it: no result depends on what
// it fetches, so its fetches are recorded here instead of being made.
#include <gtest/gtest.h>
#include <hwy/base.h>  // HWY_INLINE

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "cpu/kernels.h"

namespace deuce::cpu {
namespace {

std::set<intptr_t> fetched_lines;
void fetch(const std::byte* at) {
  fetched_lines.insert(reinterpret_cast<intptr_t>(at) / kCacheLine);
}

#include "cpu/fetch-inl.h"

struct Layout {
  int rows, row_bytes;
  ptrdiff_t distance;  // between neighbouring rows
};

/// Makes the fetches of `blocks` blocks; the addresses are never read.
void fetch_all(const Layout& layout, int blocks, int fetches, intptr_t base, intptr_t resting) {
  std::vector<const std::byte*> rows;
  for (int i = 0; i < layout.rows; ++i) {
    rows.push_back(reinterpret_cast<const std::byte*>(base + i * layout.distance));
  }
  Fetcher fetcher({rows.data(), layout.rows, layout.row_bytes}, blocks, fetches,
                  reinterpret_cast<const void*>(resting));
  for (int block = 0; block < blocks; ++block) {
    Ahead ahead = fetcher.next();
    for (int i = 0; i < fetches; ++i) ahead.fetch_next<1>();
  }
}

TEST(Fetcher, EveryLineOfTheNextTileIsFetchedAndNoneFarFromIt) {
  constexpr intptr_t kBase = 1 << 20, kResting = 64 * kCacheLine;
  for (const Layout& layout : {Layout{24, 4096, 4096}, Layout{24, 4096, 8192}, Layout{24, 256, 256},
                               Layout{24, 256, 4096}, Layout{24, 128, -128}, Layout{1, 128, 128},
                               Layout{2, 64, 64}, Layout{7, 64, 1024}, Layout{24, 1024, 0}}) {
    for (const int blocks : {1, 2, 3, 8, 48, 128, 1000}) {
      for (const int fetches : {0, 1, 4, 16, 24, 48}) {
        fetched_lines.clear();
        fetch_all(layout, blocks, fetches, kBase, kResting);
        std::set<intptr_t> wanted, allowed{kResting / kCacheLine};
        for (int row = 0; row < layout.rows; ++row) {
          const intptr_t first = (kBase + row * layout.distance) / kCacheLine;
          const intptr_t lines = layout.row_bytes / kCacheLine;
          for (intptr_t line = first; line < first + lines; ++line) wanted.insert(line);
          for (intptr_t line = first; line <= first + lines; ++line) allowed.insert(line);
        }
        const testing::Message where = testing::Message()
                                       << layout.rows << " x " << layout.row_bytes << " bytes, "
                                       << blocks << " blocks of " << fetches;
        EXPECT_TRUE(std::ranges::includes(fetched_lines, wanted)) << where;
        EXPECT_TRUE(std::ranges::includes(allowed, fetched_lines)) << where;
      }
    }
  }
}

TEST(Fetcher, RestsWhenThereIsNoNextTile) {
  fetched_lines.clear();
  fetch_all({0, 128, 128}, 8, 16, 0, 64 * kCacheLine);
  EXPECT_EQ(fetched_lines, std::set<intptr_t>{64});
}

}  // namespace
}  // namespace deuce::cpu
