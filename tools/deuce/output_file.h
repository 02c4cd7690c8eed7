// SPDX-License-Identifier: Apache-2.0
// Files that a command leaves in a folder.
#pragma once

#include <string>

#include "plan/status.h"

namespace deuce::cli {

/// Writes folder/name, creating the folder if need be; RUNTIME_ERROR names what cannot be written.
Status save_in(const std::string& folder, const std::string& name, const std::string& bytes);

}  // namespace deuce::cli
