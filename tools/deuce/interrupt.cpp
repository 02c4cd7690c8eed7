// SPDX-License-Identifier: Apache-2.0
// The handlers and what they share with the program: a handler may come in any thread, and at any
// instruction.
#include "interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>

#include "exit_code.h"

namespace deuce::cli {
namespace {

/// What an InterruptHeld makes of on_last_interrupt().
enum Hold : int { free_to_end, holding, ends_later, too_late_to_end };

std::atomic<int> flag{0}, hold{free_to_end};
std::atomic<const char*> last_words{""};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);  // a handler waits for no lock

void set_handler(void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGINT, &action, nullptr);
}

void on_interrupt(int) { flag = 1; }

[[noreturn]] void end() {
  const char* words = last_words;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words, std::strlen(words));
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

void on_last_interrupt(int) {
  int now = holding;
  if (!hold.compare_exchange_strong(now, ends_later) && now == free_to_end) end();
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

InterruptHeld::InterruptHeld() { hold = holding; }

InterruptHeld::~InterruptHeld() {
  int now = holding;
  if (!hold.compare_exchange_strong(now, free_to_end) && now == ends_later) end();
}

bool InterruptHeld::asked() const { return hold == ends_later; }

void InterruptHeld::too_late() {
  // First this: a handler that runs already must not end the process with the sentence.
  hold = too_late_to_end;
  if (*last_words.load() != 0) set_handler(SIG_DFL, 0);
}

}  // namespace deuce::cli
