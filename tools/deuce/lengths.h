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

/// Every case of a file like data/decode_batches.json; a fault is named by file and case.
Result<std::vector<LengthCase>> read_length_cases(const std::string& path);

/// The cases of a length file, or those that `batches` (8 unless given) form of a request trace.
/// Not empty `names` choose among them, and batches do in a length file. Every length is divided by
/// `divisor`, at least 1 stays.
Result<std::vector<LengthCase>> read_trace(const std::string& path,
                                           const std::vector<std::string>& names,
                                           const std::vector<int64_t>& batches, int32_t divisor);

}  // namespace deuce::cli
