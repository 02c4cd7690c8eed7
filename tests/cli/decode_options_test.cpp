// SPDX-License-Identifier: Apache-2.0
// What each option of a drawn decode problem changes, and what is refused.
#include "decode_options.h"

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>

namespace deuce::cli {
namespace {

using emulator::CaseSpec;

/// The problem of a command line; the sentence of a refusal in `refused`.
CaseSpec spec_after(const std::string& line, std::string* refused = nullptr) {
  CLI::App app;
  DecodeOptions options;
  add_decode_options(app, options);
  try {
    app.parse(line);
  } catch (const CLI::Error& error) {
    EXPECT_NE(refused, nullptr) << line << ": " << error.what();
    if (refused != nullptr) *refused = error.what();
    return {};
  }
  note_given(app, options);
  const Result<CaseSpec> spec = spec_of(options);
  if (!spec.ok() && refused != nullptr) *refused = spec.status().sentence();
  EXPECT_TRUE(spec.ok() || refused != nullptr) << line << ": " << spec.status().sentence();
  return spec.ok() ? spec.value() : CaseSpec{};
}

struct Change {
  const char* line;
  std::function<bool(const CaseSpec&)> holds;
};

TEST(DecodeOptions, EachOneReachesTheProblem) {
  const Change changes[] = {
      {"--head-dim 128", [](const CaseSpec& s) { return s.head_dim == 128; }},
      {"--type f16", [](const CaseSpec& s) { return !s.bf16 && !s.e4m3; }},
      {"--type e4m3", [](const CaseSpec& s) { return s.bf16 && s.e4m3; }},
      {"--kernel hopper", [](const CaseSpec& s) { return s.kernel == Backend::hopper; }},
      {"--kernel hopper", [](const CaseSpec& s) { return s.score_slots == 0; }},
      {"--score-slots 3", [](const CaseSpec& s) { return s.score_slots == 3; }},
      {"--row-replicas 2", [](const CaseSpec& s) { return s.row_replicas == 2; }},
      {"--rows 7", [](const CaseSpec& s) { return s.group == 7; }},
      {"--kv-heads 3", [](const CaseSpec& s) { return s.kv_heads == 3; }},
      {"--page-size 24", [](const CaseSpec& s) { return s.page_size == 24; }},
      {"--softcap 20", [](const CaseSpec& s) { return s.softcap == 20; }},
      {"--sink", [](const CaseSpec& s) { return s.sink; }},
      {"--window-left 9", [](const CaseSpec& s) { return s.window_left == 9; }},
      {"--window-right 8", [](const CaseSpec& s) { return s.window_right == 8; }},
      {"--num-splits 5", [](const CaseSpec& s) { return s.num_splits == 5; }},
      {"--split-kv-len 256", [](const CaseSpec& s) { return s.split_kv_len == 256; }},
      {"--seed 4", [](const CaseSpec& s) { return s.seed == 4; }},
      {"--q-len 3", [](const CaseSpec& s) { return s.q_len == 3 && s.causal; }},
      {"--q-len 3 --no-causal", [](const CaseSpec& s) { return s.q_len == 3 && !s.causal; }},
      {"--kv-len 9,0,4",
       [](const CaseSpec& s) {
         return s.kv_len == std::vector{9, 0, 4};
       }},
      {"--kv-len 9 --batch 2",
       [](const CaseSpec& s) {
         return s.kv_len == std::vector{9, 9};
       }},
      {"--kv-len 9,4 --kv-start 5",
       [](const CaseSpec& s) {
         return s.kv_start == std::vector{5, 4};
       }},
      {"--kv-len 9,4,1 --q-len 1,3,0",
       [](const CaseSpec& s) {
         return s.q_lens == std::vector{1, 3, 0} && s.q_len == 3;
       }},
  };
  for (const Change& change : changes) {
    EXPECT_TRUE(change.holds(spec_after(change.line))) << change.line;
    EXPECT_FALSE(change.holds(spec_after(""))) << change.line << " is the default";
  }
}

TEST(DecodeOptions, OneLengthStandsForTenRequestsDownToNone) {
  const CaseSpec spec = spec_after("--kv-len 2000");
  EXPECT_EQ(spec.kv_len.size(), 10U);
  EXPECT_EQ(*std::ranges::max_element(spec.kv_len), 2000);
  EXPECT_EQ(*std::ranges::min_element(spec.kv_len), 0);
}

// As `deuce trace` has them: a default problem of its own, said by the help.
TEST(DecodeOptions, DefaultsOfACommandStandInItsHelp) {
  CLI::App app;
  DecodeOptions options;
  options.kv_len = {2048};
  options.batch = 1;
  add_decode_options(app, options);
  const std::string help = app.help();
  EXPECT_NE(help.find("--batch requests; default 2048"), std::string::npos) << help;
  EXPECT_NE(help.find("ten of it and less; default 1"), std::string::npos) << help;
  app.parse("--kv-len 70,9");
  note_given(app, options);
  EXPECT_EQ(spec_of(options).value().kv_len, (std::vector{70, 9}));
  options.kv_len = {30};
  EXPECT_EQ(spec_of(options).value().kv_len, std::vector{30});
}

TEST(DecodeOptions, WhatTheApiWouldRefuseIsRefused) {
  for (const char* line :
       {"--softcap -3", "--softcap 1e-60", "--softcap 1e300", "--softcap nan", "--kv-len -1",
        "--window-left -2", "--q-len 0", "--num-splits 2 --split-kv-len 256",
        "--kv-len 1,2 --batch 3", "--kv-len 1,2 --q-len 1,2,3"}) {
    std::string sentence;
    spec_after(line, &sentence);
    EXPECT_NE(sentence, "") << line;
  }
}

TEST(DecodeOptions, TheProblemIsNamedWithWhatIsUnusual) {
  EXPECT_EQ(problem_text(spec_after("")), "10 requests of 0 to 1000 keys, 16 rows");
  EXPECT_EQ(problem_text(spec_after("--kv-len 300 --batch 1 --rows 4 --kv-heads 2 --page-size 16 "
                                    "--q-len 2 --window-left 9 --softcap 20 --sink "
                                    "--num-splits 3 --kv-start 7")),
            "1 request of 300 keys, 8 rows for each of 2 KV heads, pages of 16, causal, window "
            "left 9, from key 7 on, softcap 20, sinks, 3 splits");
}

TEST(DecodeOptions, MoreThanMemoryIsLikelyToHoldIsRefused) {
  std::string refused;
  spec_after("--kv-len 1048576 --batch 4096 --kv-heads 1024", &refused);
  EXPECT_NE(refused.find("--kv-len, --batch, --kv-heads"), std::string::npos) << refused;
  EXPECT_NE(refused.find("at most 4"), std::string::npos) << refused;
}

}  // namespace
}  // namespace deuce::cli
