// SPDX-License-Identifier: Apache-2.0
// Files that lie: whatever a byte of them says, the reader refuses it with a sentence or what it
// read can be drawn.
#include <gtest/gtest.h>

#include <cstring>

#include "support/trace_drawings.h"
#include "support/trace_facts.h"
#include "trace/timeline.h"

namespace deuce::trace {
namespace {

constexpr std::size_t kMagicAndCounts = 16;

/// Empty where all of it could be drawn.
std::string refusal(const std::string& bytes) {
  const Result<TraceFile> file = decode_trace(bytes, "t");
  if (!file.ok()) return file.status().sentence();
  const Result<Timeline> run = make_timeline(file.value());
  if (!run.ok()) return run.status().sentence();
  EXPECT_FALSE(test::all_drawings({run.value(), run.value()}).empty());
  return {};
}

std::string refusal(const TraceFile& file) { return refusal(encode(file)); }

TEST(DamagedTrace, AllOfItIsDrawnWhereNothingIsDamaged) {
  EXPECT_EQ(refusal(test::plausible_trace()), "");
}

TEST(DamagedTrace, EveryBitOfEveryHeaderIsRefusedOrDrawn) {
  const TraceFile file = test::plausible_trace();
  const std::string whole = encode(file);
  uint32_t facts = 0;
  std::memcpy(&facts, whole.data() + 8, sizeof facts);
  std::size_t refused = 0, tried = 0;
  const auto flip = [&](std::size_t at) {
    for (int bit = 0; bit < 8; ++bit, ++tried) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << bit);
      refused += refusal(bytes).empty() ? 0 : 1;
    }
  };
  for (std::size_t at = 0; at < kMagicAndCounts; ++at) flip(at);
  EXPECT_EQ(refused, tried);  // of magic and counts every one
  std::size_t at = kMagicAndCounts + facts;
  for (const Slice& slice : file.slices) {
    for (std::size_t i = 0; i < sizeof(SliceHeader); ++i) flip(at + i);
    at += sizeof(SliceHeader) + slice.records.size() * sizeof(Record);
  }
  ASSERT_EQ(at, whole.size());
  EXPECT_GT(refused, tried / 4);
}

TEST(DamagedTrace, EveryBitOfEveryRecordIsRefusedOrDrawn) {
  const TraceFile whole = test::plausible_trace();
  for (std::size_t s = 0; s < whole.slices.size(); ++s) {
    for (std::size_t r = 0; r < whole.slices[s].records.size(); ++r) {
      for (int bit = 0; bit < 32; ++bit) {
        TraceFile file = whole;
        file.slices[s].records[r].word ^= 1U << bit;
        refusal(file);
      }
      for (const int bit : {0, 8, 30, 31}) {
        TraceFile file = whole;
        file.slices[s].records[r].clock ^= 1U << bit;
        refusal(file);
      }
    }
  }
}

TEST(DamagedTrace, EveryShorterAndEveryLongerFileIsRefused) {
  const std::string whole = encode(test::plausible_trace());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "") << length;
  }
  EXPECT_EQ(refusal(whole + '\0'), "t: bytes behind the last slice");
}

TEST(DamagedTrace, WhatAHeaderCannotSayIsNamed) {
  constexpr const char* kOtherKind = "t: a slice has a header of another kind";
  const auto with = [](auto change) {
    TraceFile file = test::plausible_trace();
    change(file.slices[0]);
    return refusal(file);
  };
  EXPECT_EQ(with([](Slice& s) { s.header.magic = 1; }), kOtherKind);
  EXPECT_EQ(with([](Slice& s) { s.header.version = 1; }),
            "t: its records are of another version than this deuce reads: record it again");
  EXPECT_EQ(with([](Slice& s) { s.header.agent = static_cast<Agent>(4); }), kOtherKind);
  EXPECT_EQ(with([](Slice& s) { s.header.role = 9; }), kOtherKind);
  EXPECT_EQ(with([](Slice& s) { s.header.cta = ~0U; }), kOtherKind);
  EXPECT_EQ(with([](Slice& s) { s.header.policy = static_cast<Policy>(2); }), kOtherKind);
  EXPECT_EQ(with([](Slice& s) { s.header.capacity = s.header.wanted = ~0U; }),
            "t: the trace ends early");
  constexpr const char* kUnknown =
      "t: a record is of a kind or an event that this deuce does not know";
  EXPECT_EQ(with([](Slice& s) { s.records[0].word = pack(Kind::begin, Event::count, 0, 0, 0); }),
            kUnknown);
  EXPECT_EQ(with([](Slice& s) {
              s.records[0].word = pack(static_cast<Kind>(5), Event::tma_wait, 0, 0, 0);
            }),
            kUnknown);
  const std::string apart = with([](Slice& s) {
    s.header.sm = 7;  // an SM of its own
    s.header.begin.ns = 1ULL << 60;
  });
  EXPECT_NE(apart.find("further than those of a run"), std::string::npos) << apart;
  const std::string backwards =
      with([](Slice& s) { std::swap(s.records[0].clock, s.records[1].clock); });
  EXPECT_NE(backwards.find("ends before it begins"), std::string::npos) << backwards;
}

}  // namespace
}  // namespace deuce::trace
