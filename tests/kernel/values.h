// SPDX-License-Identifier: Apache-2.0
// Result bits as numbers, and small building blocks of hand-made cases.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <optional>
#include <vector>

#include "reference/number_format.h"
#include "support/content.h"
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

/// Element `at` of a tensor.
inline double element(int32_t dtype, const void* tensor, int64_t at) {
  const int64_t bytes = element_bytes(dtype);
  uint32_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(tensor) + at * bytes,
              static_cast<std::size_t>(bytes));
  return reference::decode(bits, reference::number_format(DType{dtype}));
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

/// Every tensor in the finest type that the subject takes, so that small differences show: fp32,
/// and fp16 on GPU kernels, which multiply 16-bit numbers alone.
inline Case fine_case(const Subject& subject) {
  Case fine;
  fine.q_dtype = fine.kv_dtype = fine.out_dtype = subject.is_gpu_kernel() ? DEUCE_F16 : DEUCE_F32;
  return fine;
}
/// Relative error of an output of fine_case() that is a short sum without cancellation: in fp16
/// probabilities and output are rounded.
inline double fine_error(const Case& fine) { return fine.out_dtype == DEUCE_F16 ? 0x1p-9 : 1e-5; }

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
