// SPDX-License-Identifier: Apache-2.0
// What the exit code of `deuce` says; the table is printed by --help and docs/cli.md.
#pragma once

#include <array>

#include "deuce/deuce.h"

namespace deuce::cli {

enum class ExitCode : int {
  ok = 0,
  check_failed = 1,
  bad_input = 2,
  unsupported = 3,
  no_device = 4,
  run_failed = 5,
  hazard = 6,
  review = 7,
  incomplete = 8,
  slower = 9,
  interrupted = 130
};

struct ExitCodeRow {
  ExitCode code;
  const char* meaning;
};

inline constexpr std::array kExitCodes{
    ExitCodeRow{ExitCode::ok, "success"},
    ExitCodeRow{ExitCode::check_failed,
                "a result lies outside the tolerance, or differs between repeats"},
    ExitCodeRow{ExitCode::bad_input,
                "wrong usage, or an input file or value that can never be right"},
    ExitCodeRow{ExitCode::unsupported, "right, but not on this backend or in this build"},
    ExitCodeRow{ExitCode::no_device, "no device, or no driver, for the backend asked for"},
    ExitCodeRow{ExitCode::run_failed, "memory, file system or device failed while running"},
    ExitCodeRow{ExitCode::hazard, "the emulator found a race or a deadlock"},
    ExitCodeRow{ExitCode::review, "deuce check: only findings that a human must judge"},
    ExitCodeRow{ExitCode::incomplete, "deuce check: a budget ended or something was not executed"},
    ExitCodeRow{ExitCode::slower,
                "deuce bench compare: a point is slower, has no time or failed its check"},
    ExitCodeRow{ExitCode::interrupted,
                "stopped by Ctrl-C; what was measured has been printed, of a trace nothing was "
                "written"},
};

constexpr ExitCode exit_code_of(deuce_status status) {
  switch (status) {
    case DEUCE_OK: return ExitCode::ok;
    case DEUCE_INVALID_ARGUMENT:
    case DEUCE_VERSION_MISMATCH: return ExitCode::bad_input;
    case DEUCE_UNSUPPORTED: return ExitCode::unsupported;
    case DEUCE_NO_DEVICE: return ExitCode::no_device;
    case DEUCE_HAZARD: return ExitCode::hazard;
    default: return ExitCode::run_failed;
  }
}

}  // namespace deuce::cli
