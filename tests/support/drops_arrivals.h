// SPDX-License-Identifier: Apache-2.0
// Makes a run of the Hopper kernel on the emulator stand still.
#pragma once

#include "emulator/launch.h"

namespace deuce::test {

/// Drops the arrivals that give ring slots back, but for the first three.
class DropsArrivals : public emulator::OpFilter {
 public:
  bool pass(emulator::Op& op, const emulator::OpContext& context) override {
    return op.kind != emulator::OpKind::arrive || context.role != Role::attend || ++seen_ < 4;
  }

 private:
  int seen_ = 0;
};

}  // namespace deuce::test
