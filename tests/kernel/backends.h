// SPDX-License-Identifier: Apache-2.0
// Test fixture with one instance per backend of this library, and loops over drawn cases.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "support/subject.h"

namespace deuce::testing {

/// Empty, or what is wrong with the cases that were computed, refused and left out in a test of
/// this full name.
std::string service_complaint(const std::string& test, const ServedCases& cases);

class Backends : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    served_cases() = {};
    const std::string why = subject().why_missing == nullptr ? "" : subject().why_missing();
    runs_ = why.empty();
    if (runs_) return;
    if (std::getenv("DEUCE_REQUIRE_GPU") != nullptr) FAIL() << "a GPU is required: " << why;
    GTEST_SKIP() << "no GPU: " << why;
  }
  /// A test that a subject is expected to serve must have computed something on it, and one that it
  /// is expected to refuse as a whole nothing; what is left out must be listed: the lists stay
  /// true.
  void TearDown() override {
    if (!runs_) return;
    for (const std::string& what : served_cases().left_out) RecordProperty("left_out", what);
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string name = std::string(test->test_suite_name()) + "." + test->name();
    const std::string complaint = service_complaint(name, served_cases());
    if (!complaint.empty()) ADD_FAILURE() << complaint;
  }
  const Subject& subject() const { return GetParam(); }

  /// `condition`, and if so puts down that the test does without `what` for this subject.
  static bool leaves_out(bool condition, const std::string& what) {
    if (condition) served_cases().left_out.insert(what);
    return condition;
  }

 private:
  bool runs_ = false;  // its device is there
};

inline std::string subject_name(const ::testing::TestParamInfo<Subject>& param) {
  return param.param.name;
}
inline void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

}  // namespace deuce::testing

/// Runs a suite of Backends tests on every backend, `Backends/Suite.Test/backend`.
#define DEUCE_ON_EVERY_BACKEND(suite)                                                          \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, ::testing::ValuesIn(::deuce::testing::subjects()), \
                           ::deuce::testing::subject_name)
