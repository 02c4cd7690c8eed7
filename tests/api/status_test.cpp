// SPDX-License-Identifier: Apache-2.0
// Every deuce_status is reached through the C functions, with its sentence and field.
// INVALID_ARGUMENT, UNSUPPORTED and VERSION_MISMATCH have tables of their own beside this file.
#include <gtest/gtest.h>

#include <array>
#include <new>
#include <set>
#include <stdexcept>

#include "api/fake_plan.h"

namespace deuce_test {
namespace {

deuce_status run_fake(FakePlan& plan, const Sample& sample) {
  return deuce_decode_run(plan.handle(), &sample.args, nullptr, 0, nullptr);
}

TEST(StatusString, IsDifferentForEveryStatusAndNeverNull) {
  std::set<std::string> words;
  for (int status = DEUCE_OK; status <= DEUCE_HAZARD; ++status) {
    words.insert(deuce_status_string(status));
  }
  EXPECT_EQ(words.size(), 9U);
  EXPECT_STREQ(deuce_status_string(DEUCE_INVALID_ARGUMENT), "invalid argument");
  EXPECT_STREQ(deuce_status_string(-1), "unknown status");
  EXPECT_STREQ(deuce_status_string(9), "unknown status");
}

TEST(LastError, IsEmptyAfterSuccess) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  EXPECT_EQ(deuce_decode_check(nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error_field(), "config");
  EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_OK);
  EXPECT_STREQ(deuce_last_error(), "");
  EXPECT_STREQ(deuce_last_error_field(), "");
}

TEST(Status, NullHandlesAreInvalid) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  std::size_t bytes = 0;
  deuce_fault fault{};
  fault.struct_size = sizeof fault;
  EXPECT_EQ(deuce_decode_run(nullptr, &sample.args, nullptr, 0, nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "plan is null");
  EXPECT_EQ(deuce_decode_explain(nullptr, nullptr, nullptr, &bytes), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "plan is null");
  EXPECT_EQ(deuce_decode_fault(nullptr, &fault), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "plan is null");
  EXPECT_EQ(deuce_decode_run(plan.handle(), nullptr, nullptr, 0, nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "args is null");
  EXPECT_EQ(deuce_decode_explain(plan.handle(), nullptr, nullptr, nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "bytes is null");
  EXPECT_EQ(deuce_decode_fault(plan.handle(), nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "fault is null");
  deuce_decode_plan_destroy(nullptr);
}

TEST(Status, DeviceFaultIsReportedOnceAndTheNextRunProceeds) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  deuce_fault found = fault_record(DEUCE_FAULT_PAGE_ID, 3);
  found.column = 9;
  found.value = -7;
  found.highest = 11;
  found.tag = 42;
  plan.backend().fault = found;

  EXPECT_EQ(run_fake(plan, sample), DEUCE_DEVICE_FAULT);
  EXPECT_STREQ(deuce_last_error(),
               "an earlier run (tag 42) found for request 3, column 9: page id is -7, allowed is 0 "
               ".. 11");
  EXPECT_STREQ(deuce_last_error_field(), "block_table");
  EXPECT_EQ(plan.backend().runs, 0);
  EXPECT_EQ(run_fake(plan, sample), DEUCE_OK);
  EXPECT_EQ(plan.backend().runs, 1);
}

TEST(Status, EveryFaultCodeNamesItsArgument) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  constexpr std::array<const char*, 6> kFields{"kv_len",        "block_table", "cu_q_len",
                                               "last_page_len", "kv_start",    "cache_row"};
  for (int code = DEUCE_FAULT_KV_LEN; code <= DEUCE_FAULT_CACHE_ROW; ++code) {
    plan.backend().fault = fault_record(code);
    EXPECT_EQ(run_fake(plan, sample), DEUCE_DEVICE_FAULT);
    EXPECT_STREQ(deuce_last_error_field(), kFields[static_cast<std::size_t>(code - 1)]);
    EXPECT_EQ(std::string(deuce_last_error()).find("column"), std::string::npos);
  }
}

TEST(Status, FaultCanBePolledAndIsThenGone) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  deuce_fault found = fault_record(DEUCE_FAULT_KV_LEN, 1);
  found.value = 99;
  found.highest = 24;
  found.tag = 7;
  plan.backend().fault = found;

  deuce_fault seen{};
  seen.struct_size = sizeof seen;
  EXPECT_EQ(deuce_decode_fault(plan.handle(), &seen), DEUCE_OK);
  EXPECT_EQ(seen.struct_size, sizeof seen);
  EXPECT_EQ(seen.code, DEUCE_FAULT_KV_LEN);
  EXPECT_EQ(seen.request, 1);
  EXPECT_EQ(seen.column, -1);
  EXPECT_EQ(seen.value, 99);
  EXPECT_EQ(seen.lowest, 0);
  EXPECT_EQ(seen.highest, 24);
  EXPECT_EQ(seen.tag, 7U);
  EXPECT_EQ(seen.reserved, 0U);
  EXPECT_EQ(deuce_decode_fault(plan.handle(), &seen), DEUCE_OK);
  EXPECT_EQ(seen.code, DEUCE_FAULT_NONE);
  EXPECT_EQ(seen.column, -1);
}

TEST(Status, AFaultIsNotLostToABadStruct) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  plan.backend().fault = fault_record(DEUCE_FAULT_KV_LEN);
  deuce_fault seen{};
  EXPECT_EQ(deuce_decode_fault(plan.handle(), &seen), DEUCE_INVALID_ARGUMENT);
  seen.struct_size = sizeof seen;
  EXPECT_EQ(deuce_decode_fault(plan.handle(), &seen), DEUCE_OK);
  EXPECT_EQ(seen.code, DEUCE_FAULT_KV_LEN);
}

TEST(Status, WhatTheBackendReportsReachesTheCaller) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  plan.backend().on_run = [](const deuce::Call&) {
    return deuce::Status{DEUCE_HAZARD, "", "mma warp 1 reads S slot 0 before s_ready"};
  };
  EXPECT_EQ(run_fake(plan, sample), DEUCE_HAZARD);
  EXPECT_STREQ(deuce_last_error(), "mma warp 1 reads S slot 0 before s_ready");
  EXPECT_STREQ(deuce_last_error_field(), "");
}

TEST(Status, ExceptionsStopAtTheBoundary) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  plan.backend().on_run = [](const deuce::Call&) -> deuce::Status { throw std::bad_alloc(); };
  EXPECT_EQ(run_fake(plan, sample), DEUCE_RUNTIME_ERROR);
  EXPECT_STREQ(deuce_last_error(), "out of host memory");
  plan.backend().on_run = [](const deuce::Call&) -> deuce::Status {
    throw std::runtime_error("the sky fell");
  };
  EXPECT_EQ(run_fake(plan, sample), DEUCE_RUNTIME_ERROR);
  EXPECT_STREQ(deuce_last_error(), "the sky fell");
  plan.backend().on_run = [](const deuce::Call&) -> deuce::Status { throw 5; };
  EXPECT_EQ(run_fake(plan, sample), DEUCE_RUNTIME_ERROR);
  EXPECT_STREQ(deuce_last_error(), "an exception of unknown type");
}

TEST(Status, BackendsSeeResolvedArguments) {
  Sample sample(DEUCE_BACKEND_REFERENCE, Cache::contiguous);
  sample.args.num_pages = 0;
  FakePlan plan(sample.config);
  plan.backend().on_run = [](const deuce::Call& call) {
    EXPECT_EQ(call.score_scale, 1.0F);
    EXPECT_EQ(call.out_scale, 1.0F);
    EXPECT_EQ(call.num_pages, 3);
    return deuce::Status{};
  };
  EXPECT_EQ(run_fake(plan, sample), DEUCE_OK);
  EXPECT_EQ(plan.backend().runs, 1);
}

TEST(Status, AGpuLikeBackendJudgesItsDataItself) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  sample.kv_len[0] = 1000;
  FakePlan plan(sample.config, {}, /*checks_host_data=*/false);
  EXPECT_EQ(run_fake(plan, sample), DEUCE_OK);
  EXPECT_EQ(plan.backend().runs, 1);
}

TEST(Status, BatchZeroNeedsNothing) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config, {.bytes = 4096, .control_bytes = 64});
  const deuce_decode_args nothing = deuce::make_args();
  EXPECT_EQ(deuce_decode_run(plan.handle(), &nothing, nullptr, 0, nullptr), DEUCE_OK);
  EXPECT_EQ(plan.backend().runs, 0);
}

}  // namespace
}  // namespace deuce_test
