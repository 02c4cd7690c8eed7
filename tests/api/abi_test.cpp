// SPDX-License-Identifier: Apache-2.0
// Structs of other ages: what an older or newer caller's struct_size means.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "api/fake_plan.h"

namespace deuce_test {
namespace {

// A copy of `from` in a block of exactly `size` bytes that says so itself.
template <class T>
std::vector<std::byte> resized(const T& from, std::size_t size) {
  std::vector<std::byte> block(size);
  std::memcpy(block.data(), &from, std::min(size, sizeof from));
  const auto stated = static_cast<uint32_t>(size);
  std::memcpy(block.data(), &stated, std::min(size, sizeof stated));
  return block;
}

deuce_status check(const std::vector<std::byte>& block) {
  return deuce_decode_check(reinterpret_cast<const deuce_decode_config*>(block.data()));
}

deuce_status run(FakePlan& plan, const std::vector<std::byte>& block) {
  const auto* args = reinterpret_cast<const deuce_decode_args*>(block.data());
  return deuce_decode_run(plan.handle(), args, nullptr, 0, nullptr);
}

TEST(Abi, VersionOfHeaderAndLibraryAgree) {
  EXPECT_EQ(deuce_abi_version(), static_cast<uint32_t>(DEUCE_ABI_VERSION));
  EXPECT_STREQ(deuce_version(), DEUCE_VERSION);
}

TEST(Abi, ShorterConfigReadsAsZerosBeyondItsEnd) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  sample.config.emulator_seed = 5;  // refused if it were read
  EXPECT_EQ(check(resized(sample.config, 120)), DEUCE_OK) << deuce_last_error();
  EXPECT_EQ(check(resized(sample.config, 128)), DEUCE_INVALID_ARGUMENT);
}

TEST(Abi, ShorterArgsReadAsZerosBeyondTheirEnd) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  sample.args.trace_bytes = 5;  // refused if it were read
  FakePlan plan(sample.config);
  EXPECT_EQ(run(plan, resized(sample.args, 448)), DEUCE_OK) << deuce_last_error();
  EXPECT_EQ(run(plan, resized(sample.args, 456)), DEUCE_INVALID_ARGUMENT);
}

TEST(Abi, LongerStructsWithAZeroTailAreAccepted) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  EXPECT_EQ(check(resized(sample.config, 160)), DEUCE_OK) << deuce_last_error();
  EXPECT_EQ(run(plan, resized(sample.args, 512)), DEUCE_OK) << deuce_last_error();
  EXPECT_EQ(run(plan, resized(sample.args, 4096)), DEUCE_OK) << deuce_last_error();
}

TEST(Abi, UnknownTailNamesStructOffsetAndVersion) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  std::vector<std::byte> config = resized(sample.config, 160);
  config[141] = std::byte{1};
  EXPECT_EQ(check(config), DEUCE_VERSION_MISMATCH);
  EXPECT_STREQ(deuce_last_error(),
               "deuce_decode_config has 160 bytes and byte 141 is not zero: deuce " DEUCE_VERSION
               " knows the first 128; leave newer fields zero or load a newer library");
  EXPECT_STREQ(deuce_last_error_field(), "struct_size");

  FakePlan plan(sample.config);
  std::vector<std::byte> args = resized(sample.args, 464);
  args[463] = std::byte{1};
  EXPECT_EQ(run(plan, args), DEUCE_VERSION_MISMATCH);
  EXPECT_STREQ(deuce_last_error(),
               "deuce_decode_args has 464 bytes and byte 463 is not zero: deuce " DEUCE_VERSION
               " knows the first 456; leave newer fields zero or load a newer library");
  EXPECT_EQ(plan.backend().runs, 0);
}

TEST(Abi, ForgottenStructSizeIsNamed) {
  Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  sample.config.struct_size = 0;
  EXPECT_EQ(deuce_decode_check(&sample.config), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(),
               "struct_size of config is 0: set it to sizeof(deuce_decode_config), 128 in this "
               "version");
  sample.args.struct_size = 0xcccccccc;
  EXPECT_EQ(deuce_decode_run(plan.handle(), &sample.args, nullptr, 0, nullptr),
            DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(
      deuce_last_error(),
      "struct_size of args is 3435973836: set it to sizeof(deuce_decode_args), 456 in this "
      "version");
  deuce_fault fault{};
  EXPECT_EQ(deuce_decode_fault(plan.handle(), &fault), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(),
               "struct_size of fault is 0: set it to sizeof(deuce_fault), 48 in this version");
}

TEST(Abi, ConfigShorterThanItsWindowsIsRefused) {
  // There zero would mean "sees itself only" for a caller that has never heard of windows.
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  EXPECT_EQ(check(resized(sample.config, 84)), DEUCE_INVALID_ARGUMENT);
}

TEST(Abi, ASizeThatEndsInsideAFieldNamesIt) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  EXPECT_EQ(check(resized(sample.config, 124)), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(
      deuce_last_error(),
      "struct_size of config is 124: it ends inside emulator_seed, bytes 120 .. 127; set it "
      "to sizeof(deuce_decode_config), 128 in this version");
  EXPECT_EQ(check(resized(sample.config, 119)), DEUCE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(deuce_last_error()).find("inside row_replicas"), std::string::npos);

  constexpr std::size_t kStride = offsetof(deuce_decode_args, k_token_scale_stride);
  for (const std::size_t size : {kStride + 1, kStride + 8, kStride + 23}) {
    EXPECT_EQ(run(plan, resized(sample.args, size)), DEUCE_INVALID_ARGUMENT) << size;
    EXPECT_NE(std::string(deuce_last_error()).find("inside k_token_scale_stride"),
              std::string::npos);
  }
  EXPECT_EQ(run(plan, resized(sample.args, kStride)), DEUCE_OK) << deuce_last_error();
  EXPECT_EQ(plan.backend().runs, 1);

  std::vector<std::byte> fault = resized(deuce_fault{}, 20);
  EXPECT_EQ(deuce_decode_fault(plan.handle(), reinterpret_cast<deuce_fault*>(fault.data())),
            DEUCE_INVALID_ARGUMENT);
  EXPECT_NE(std::string(deuce_last_error()).find("inside value, bytes 16 .. 23"),
            std::string::npos);
}

TEST(Abi, FaultIsWrittenAsFarAsTheCallerHasRoom) {
  const Sample sample(DEUCE_BACKEND_REFERENCE);
  FakePlan plan(sample.config);
  plan.backend().fault = fault_record(DEUCE_FAULT_KV_LEN, 4);
  std::vector<std::byte> block = resized(deuce_fault{}, 16);
  EXPECT_EQ(deuce_decode_fault(plan.handle(), reinterpret_cast<deuce_fault*>(block.data())),
            DEUCE_OK);
  int32_t request = 0;
  std::memcpy(&request, block.data() + offsetof(deuce_fault, request), sizeof request);
  EXPECT_EQ(request, 4);

  std::vector<std::byte> longer = resized(deuce_fault{}, 64);
  EXPECT_EQ(deuce_decode_fault(plan.handle(), reinterpret_cast<deuce_fault*>(longer.data())),
            DEUCE_OK);
}

}  // namespace
}  // namespace deuce_test
