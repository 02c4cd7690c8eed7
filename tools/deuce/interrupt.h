// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a flag: the first one ends the measurement, the second one the process.
#pragma once

namespace deuce::cli {

/// From here on SIGINT sets the flag instead of ending the process.
void catch_interrupt();
bool interrupted();

}  // namespace deuce::cli
