// SPDX-License-Identifier: Apache-2.0
// The handler and its flag.
#include "interrupt.h"

#include <csignal>

namespace deuce::cli {
namespace {

volatile std::sig_atomic_t flag = 0;

void on_interrupt(int) { flag = 1; }

}  // namespace

void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one ends the process
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return flag != 0; }

}  // namespace deuce::cli
