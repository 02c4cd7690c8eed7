// SPDX-License-Identifier: Apache-2.0
// A benchmark result read back from its JSON: what `compare`, `plot` and the figures work on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/status.h"
#include "statistics.h"

namespace deuce::cli {

struct ResultPoint {
  // What was measured.
  std::string preset, lengths, dtype, layout, backend, mode;
  std::vector<int64_t> kv_lens;
  int64_t q_len = 1, q_heads = 0, kv_heads = 0, head_dim = 0, page_size = 0, window_left = -1;
  bool sinks = false;
  double softcap = 0;
  // What was found.
  double median_s = 0, roof_bytes_per_s = 0;
  Interval interval;  // 95 %, of the median
  double kv_bytes = 0;
  std::string fault;  // why there is no time to work with, or empty

  double bytes_per_s() const { return kv_bytes / median_s; }
  bool even() const;
  int64_t kv_len() const { return kv_lens.front(); }
  /// Everything that makes two points the same measurement; backend and preset name do not.
  std::string key() const;
  /// The same for people: "32:8 x 128, 8 x 8192, bf16, pages of 16".
  std::string title() const;
};

struct ResultFile {
  std::string path, label;             // label: the file's name without its ending
  std::string device, commit;          // of the machine that measured
  std::vector<ResultPoint> points;     // timed, with right results
  std::vector<ResultPoint> no_result;  // the others, each with its fault
};

/// A fault is named by file, point and field.
Result<ResultFile> read_result(const std::string& path);

}  // namespace deuce::cli
