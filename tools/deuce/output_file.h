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

/// Writes the files of a folder, which is created if need be. Nothing is written where one of the
/// names belongs to a folder or a device, and none takes its name before all are complete; an end
/// by end_at_interrupt() before that leaves none of them. Then they are renamed one by one: should
/// the system refuse one, those before it have their names. RUNTIME_ERROR names what failed.
Status save_all(const std::string& folder, const std::vector<OutputFile>& files);

/// One file, or what goes to a device or a pipe.
Status save_in(const std::string& folder, const std::string& name, const std::string& bytes);

}  // namespace deuce::cli
