// SPDX-License-Identifier: Apache-2.0
// The cases of hopper_bench, by set. One case is one layer's attention of one step.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "deuce/deuce.h"

namespace deuce::bench {

struct BenchCase {
  std::string name;
  std::vector<int32_t> lengths;
  int kv_heads = 8, group = 4, head_dim = 128, q_len = 1, page_size = 0;
  bool head_major = true, shuffled = true;
  int32_t q_dtype = DEUCE_BF16, kv_dtype = DEUCE_BF16;
  int score_slots = 0;
};

inline BenchCase case_of(int batch, int length, int kv_heads, int group, int head_dim, int page,
                         bool head_major, int q_len = 1, bool fp8 = false) {
  BenchCase spec;
  spec.name = fmt::format("{}x{} kv{} g{} q{} hd{} {} {}{}", batch, length, kv_heads, group, q_len,
                          head_dim, page == 0 ? "linear" : fmt::format("page{}", page),
                          head_major ? "hnd" : "nhd", fp8 ? " fp8" : "");
  spec.lengths.assign(static_cast<std::size_t>(batch), length);
  spec.kv_heads = kv_heads;
  spec.group = group;
  spec.head_dim = head_dim;
  spec.page_size = page;
  spec.head_major = head_major;
  spec.q_len = q_len;
  if (fp8) spec.kv_dtype = DEUCE_E4M3;
  return spec;
}

/// Cases for the timing model: each of 132 CTAs has the same whole requests, so that one CTA stands
/// for all. Neighbours belong together: the first of a pair fits the model, the second judges it.
inline std::vector<BenchCase> predicted_cases() {
  struct Work {
    int head_dim, rows, page, requests, tiles;
    bool fp8;
  };
  constexpr Work kWork[] = {
      {128, 4, 0, 1, 1, false},    {128, 8, 0, 1, 4, false},    {128, 8, 0, 1, 128, false},
      {128, 4, 16, 1, 128, false}, {128, 64, 0, 1, 128, false}, {128, 64, 64, 1, 64, false},
      {64, 8, 0, 1, 256, false},   {64, 4, 0, 1, 16, false},    {64, 16, 16, 1, 128, false},
      {64, 8, 64, 1, 256, false},  {128, 4, 16, 1, 128, true},  {128, 8, 0, 1, 64, true},
      {64, 8, 0, 1, 256, true},    {64, 4, 16, 1, 128, true},   {128, 64, 0, 1, 128, true},
      {64, 64, 64, 1, 64, true},   {128, 4, 0, 4, 8, false},    {64, 4, 0, 3, 4, false},
      {64, 64, 16, 1, 64, false},  {64, 32, 0, 1, 128, false},
  };
  std::vector<BenchCase> cases;
  for (const Work& work : kWork) {
    cases.push_back(case_of(132 * work.requests, 64 * work.tiles, 1, work.rows, work.head_dim,
                            work.page, true, 1, work.fp8));
  }
  return cases;
}

inline std::vector<BenchCase> cases_of(const std::string& set) {
  std::vector<BenchCase> cases;
  const auto wants = [&](const char* name) { return set == "all" || set == name; };
  if (wants("steady")) {
    for (int page : {0, 16, 64}) {
      for (bool head_major : {true, false}) {
        cases.push_back(case_of(8, 32768, 8, 4, 128, page, head_major));
        if (page == 64) continue;
        cases.push_back(case_of(8, 32768, 8, 8, 64, page, head_major));
      }
      cases.push_back(case_of(32, 8192, 8, 4, 128, page, true));
      cases.push_back(case_of(8, 131072, 1, 16, 128, page, true));
      cases.push_back(case_of(8, 131072, 2, 8, 128, page, true));
    }
    cases.push_back(case_of(64, 8192, 8, 8, 128, 16, false));
    cases.push_back(case_of(16, 8192, 32, 1, 128, 0, true));
  }
  if (wants("latency")) {
    for (int length : {1024, 4096, 16384, 32768}) {
      cases.push_back(case_of(1, length, 8, 4, 128, 0, true));
      cases.push_back(case_of(1, length, 8, 4, 128, 16, false));
    }
    cases.push_back(case_of(1, 131072, 1, 8, 128, 16, false));
    cases.push_back(case_of(64, 512, 8, 4, 128, 16, false));
    cases.push_back(case_of(8, 1024, 8, 4, 128, 16, false));
  }
  if (wants("rows")) cases.push_back(case_of(8, 32768, 8, 4, 128, 16, false, 4));
  if (wants("rows") || set == "many") {
    for (int page : {16, 0}) {
      for (int q_len : {8, 16, 32})
        cases.push_back(case_of(8, 32768, 8, 4, 128, page, page == 0, q_len));
      for (int q_len : {4, 8, 16})
        cases.push_back(case_of(8, 32768, 8, 8, 64, page, page == 0, q_len));
    }
    for (int q_len : {16, 32}) cases.push_back(case_of(8, 131072, 8, 4, 128, 0, true, q_len));
    for (int q_len : {8, 16}) cases.push_back(case_of(8, 131072, 8, 8, 64, 0, true, q_len));
  }
  if (set == "predicted") return predicted_cases();
  if (wants("fp8")) {
    for (int page : {0, 16, 64}) {
      cases.push_back(case_of(8, 32768, 8, 4, 128, page, true, 1, true));
      cases.push_back(case_of(8, 32768, 8, 8, 64, page, true, 1, true));
    }
    cases.push_back(case_of(128, 2048, 8, 8, 128, 64, false, 1, true));
    cases.push_back(case_of(8, 32768, 8, 4, 128, 16, false, 8, true));
  }
  return cases;
}

}  // namespace deuce::bench
