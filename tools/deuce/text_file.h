// SPDX-License-Identifier: Apache-2.0
// A whole file that a user named.
#pragma once

#include <string>

#include "plan/status.h"

namespace deuce::cli {

/// Any file, as it is. A fault is about `option` and names the path.
Result<std::string> read_bytes(const std::string& option, const std::string& path);

/// Without a byte order mark. A fault is about `option` and names the path.
Result<std::string> read_text(const std::string& option, const std::string& path);

}  // namespace deuce::cli
