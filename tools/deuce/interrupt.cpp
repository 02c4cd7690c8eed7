// SPDX-License-Identifier: Apache-2.0
// The handlers and their flags: a handler may come in any thread, and at any instruction.
#include "interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "exit_code.h"

namespace deuce::cli {
namespace {

volatile std::sig_atomic_t flag = 0, held = 0, waiting = 0;
const char* last_words = "";

void set_handler(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
}

void on_interrupt(int) { flag = 1; }

[[noreturn]] void end() {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, last_words, std::strlen(last_words));
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

void on_last_interrupt(int) {
  if (held != 0) {
    waiting = 1;
  } else {
    end();
  }
}

}  // namespace

void catch_interrupt() {
  set_handler(on_interrupt, static_cast<int>(SA_RESETHAND));  // the second one ends the process
}

bool interrupted() { return flag != 0; }

void end_at_interrupt(const char* sentence) {
  last_words = sentence;
  set_handler(on_last_interrupt, 0);
}

InterruptHeld::InterruptHeld() { held = 1; }

InterruptHeld::~InterruptHeld() {
  held = 0;
  if (waiting != 0) end();
}

bool InterruptHeld::asked() const { return waiting != 0; }

void InterruptHeld::too_late() {
  if (*last_words != 0) set_handler(SIG_DFL, 0);
  waiting = 0;
}

}  // namespace deuce::cli
