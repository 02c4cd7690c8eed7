// SPDX-License-Identifier: Apache-2.0
// Numbers from the command line and from metadata, read strictly: the whole text is one decimal
// number inside its range, or it is refused. No octal, no hexadecimal, no infinity.
#pragma once

#include <cstdint>
#include <string_view>

#include "plan/status.h"

namespace deuce::cli {

Result<int64_t> parse_integer(std::string_view text, int64_t lowest, int64_t highest);
Result<double> parse_number(std::string_view text);
Result<bool> parse_bool(std::string_view text);

}  // namespace deuce::cli
