// SPDX-License-Identifier: Apache-2.0
// Ctrl-C that waits while something is held, each case in a process of its own.
#include "interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace deuce::cli {
namespace {

constexpr int kWentOn = 7, kInterrupted = 130;

/// Raises SIGINT while one is held, and says what became of it.
[[noreturn]] void interrupt_held(bool in_another_thread, bool too_late) {
  end_at_interrupt("stopped");
  {
    InterruptHeld held;
    if (held.asked()) ::_exit(1);
    if (in_another_thread) {
      std::thread([] { std::raise(SIGINT); }).join();  // its handler is done when it joins
    } else {
      std::raise(SIGINT);
    }
    if (!held.asked()) ::_exit(2);
    if (too_late) held.too_late();
    if (held.asked() == too_late) ::_exit(3);
  }
  ::_exit(kWentOn);
}

class InterruptDeathTest : public testing::TestWithParam<bool> {};

TEST_P(InterruptDeathTest, EndsTheProcessWhenWhatWasHeldIsOver) {
  EXPECT_EXIT(interrupt_held(GetParam(), false), testing::ExitedWithCode(kInterrupted),
              "^stopped$");
}

TEST_P(InterruptDeathTest, IsForgottenWhenItCameTooLate) {
  EXPECT_EXIT(interrupt_held(GetParam(), true), testing::ExitedWithCode(kWentOn), "^$");
}

INSTANTIATE_TEST_SUITE_P(InAnotherThread, InterruptDeathTest, testing::Bool());

TEST(InterruptAloneDeathTest, EndsTheProcessAtOnceWhereNothingIsHeld) {
  EXPECT_EXIT(
      {
        end_at_interrupt("stopped");
        { const InterruptHeld held; }
        std::raise(SIGINT);
        ::_exit(kWentOn);
      },
      testing::ExitedWithCode(kInterrupted), "^stopped$");
}

TEST(InterruptAloneDeathTest, TheNextOneAfterTooLateHasNoSentence) {
  EXPECT_EXIT(
      {
        end_at_interrupt("stopped");
        {
          InterruptHeld held;
          held.too_late();
        }
        std::raise(SIGINT);
        ::_exit(kWentOn);
      },
      testing::KilledBySignal(SIGINT), "^$");
}

}  // namespace
}  // namespace deuce::cli
