// SPDX-License-Identifier: Apache-2.0
// Request lengths of real decode batches: the cases of data/decode_batches.json.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/status.h"

namespace deuce::cli {

struct LengthCase {
  std::string name;
  std::vector<int32_t> kv_lens;  // in slot order, each >= 1
};

/// Every case of the file; a fault is named by file and case.
Result<std::vector<LengthCase>> read_length_cases(const std::string& path);

/// The case of that name, every length divided by `divisor` (at least 1 stays).
Result<LengthCase> find_case(const std::string& path, const std::vector<LengthCase>& cases,
                             const std::string& name, int32_t divisor);

}  // namespace deuce::cli
