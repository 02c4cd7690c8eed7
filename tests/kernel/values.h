// SPDX-License-Identifier: Apache-2.0
// Result bits as numbers, and small building blocks of hand-made cases.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <vector>

#include "reference/number_format.h"
#include "support/subject.h"

namespace deuce::testing {

inline std::vector<double> output_values(const Case& from, const Outcome& outcome) {
  std::vector<double> values;
  for (const uint32_t bits : outcome.out) {
    values.push_back(reference::decode(bits, reference::number_format(DType{from.out_dtype})));
  }
  return values;
}

inline std::vector<double> lse_values(const Outcome& outcome) {
  std::vector<double> values;
  for (const uint32_t bits : outcome.lse) values.push_back(std::bit_cast<float>(bits));
  return values;
}

/// Requests of one row and the given lengths.
inline std::vector<RequestCase> requests_of(const std::vector<int64_t>& lengths,
                                            int32_t q_len = 1) {
  std::vector<RequestCase> requests;
  for (const int64_t length : lengths) {
    requests.push_back(
        {.kv_len = length, .kv_start = 0, .q_len = q_len, .name = requests.size() + 1});
  }
  return requests;
}

/// Everything in fp32, so that small differences show.
inline Case float_case() {
  Case plain;
  plain.q_dtype = plain.kv_dtype = plain.out_dtype = DEUCE_F32;
  return plain;
}

/// The outcome, or nothing when the subject refuses the case by name; any other failure is one of
/// the test.
inline std::optional<Outcome> run_or_refuse(const Subject& subject, const Case& from) {
  Instance instance(from);
  Outcome outcome = run(subject, instance);
  if (outcome.refused()) return std::nullopt;
  EXPECT_EQ(outcome.status, DEUCE_OK) << outcome.sentence << "\n  " << describe(from);
  if (outcome.status != DEUCE_OK) return std::nullopt;
  return outcome;
}

/// check_frame for a case that a subject may refuse.
inline std::string check_if_served(const Subject& subject, const Case& from) {
  bool refused = false;
  return check_frame(subject, from, &refused);
}

}  // namespace deuce::testing
