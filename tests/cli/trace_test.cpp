// SPDX-License-Identifier: Apache-2.0
// What `deuce trace` does about a run that stands still, and about what it cannot record.
#include <gtest/gtest.h>

#include "record_trace.h"
#include "support/drops_arrivals.h"

namespace deuce::cli {
namespace {

TEST(TraceTool, ADeadlockOfTheEmulatorIsReportedInTheWordsOfTheTimeline) {
  test::DropsArrivals filter;
  TraceSettings settings;
  settings.spec.kernel = Backend::hopper;
  settings.spec.score_slots = settings.spec.row_replicas = 0;
  settings.spec.kv_len = {64 * 40};
  settings.filter = &filter;
  const Result<trace::TraceFile> file = trace_on_emulator(settings, "hopper");
  ASSERT_FALSE(file.ok());
  const std::string text = file.status().sentence();
  for (const char* words : {"no warp can run and nothing is pending",
                            "CTA 0  load warp 0: waits for kv_released (tma_wait KV), slot "}) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  }
}

TEST(TraceTool, AColdCacheThatWouldStayInTheL2IsRefused) {
  for (const std::size_t bytes : {std::size_t{0}, (std::size_t{1} << 20) - 1}) {
    const Result<std::size_t> copies = cold_copies(bytes);
    ASSERT_FALSE(copies.ok());
    EXPECT_EQ(copies.status().field(), "cold");
  }
  for (const std::size_t bytes :
       {std::size_t{1} << 20, std::size_t{5} << 20, std::size_t{1} << 30}) {
    const Result<std::size_t> copies = cold_copies(bytes);
    ASSERT_TRUE(copies.ok()) << copies.status().sentence();
    EXPECT_GE(copies.value() * bytes, std::size_t{64} << 20);
    EXPECT_LE(copies.value(), 64U);
  }
}

}  // namespace
}  // namespace deuce::cli
