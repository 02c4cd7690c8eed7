// SPDX-License-Identifier: Apache-2.0
// Ctrl-C: as a flag of measurements, where the first one ends the sampling and the second one the
// process, or as an end with a sentence.
#pragma once

namespace deuce::cli {

/// From here on SIGINT sets the flag instead of ending the process.
void catch_interrupt();
bool interrupted();

/// From here on SIGINT ends the process with the code of exit_code.h, after this sentence on
/// stderr. The text must live as long as the process.
void end_at_interrupt(const char* sentence);

/// While one lives, SIGINT of end_at_interrupt() waits: for files that appear together.
class InterruptHeld {
 public:
  InterruptHeld();
  ~InterruptHeld();
  InterruptHeld(const InterruptHeld&) = delete;
  InterruptHeld& operator=(const InterruptHeld&) = delete;

  bool asked() const;  // it came, and the process ends with this object
  void too_late();     // what was held is done: the sentence would no longer be true
};

}  // namespace deuce::cli
