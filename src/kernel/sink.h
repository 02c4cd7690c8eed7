// SPDX-License-Identifier: Apache-2.0
// Learned sinks: a logit for every query head that takes part in the softmax and has no value.
#pragma once

#include <cstdint>

#include "kernel/combine.h"
#include "kernel/machine.h"
#include "kernel/numbers.h"

namespace deuce {

struct Sinks {
  const void* logits = nullptr;  // [q heads], natural log; null: there are none
  FloatType element = FloatType::f32;
};

/// The sink of a query head in log2 units; kNoKey without one.
template <class Machine>
DEUCE_DEVICE float sink_log2(Machine& machine, const Sinks& sinks, int32_t head) {
  if (sinks.logits == nullptr) return kNoKey;
  float logit;
  if (sinks.element == FloatType::f32) {
    logit = machine.load_constant(static_cast<const float*>(sinks.logits) + head);
  } else {
    const uint16_t bits = machine.load_constant(static_cast<const uint16_t*>(sinks.logits) + head);
    logit = sinks.element == FloatType::bf16 ? to_float(Bf16{bits}) : to_float(Half{bits});
  }
  return logit * kLog2E;
}

}  // namespace deuce
