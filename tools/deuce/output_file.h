// SPDX-License-Identifier: Apache-2.0
// Files that a command leaves in a folder.
#pragma once

#include <string>
#include <vector>

#include "plan/status.h"

namespace deuce::cli {

struct OutputFile {
  std::string name, bytes;
};

/// Writes the files of a folder, which is created if need be. They take their names together, when
/// all of them are complete; RUNTIME_ERROR names what cannot be written. An end by
/// end_at_interrupt() before leaves none of them.
Status save_all(const std::string& folder, const std::vector<OutputFile>& files);

/// One file.
Status save_in(const std::string& folder, const std::string& name, const std::string& bytes);

}  // namespace deuce::cli
