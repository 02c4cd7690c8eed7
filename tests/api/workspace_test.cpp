// SPDX-License-Identifier: Apache-2.0
// The workspace: exactly the queried size works, less is refused with both numbers, and its bytes
// carry nothing into a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "api/fake_plan.h"

namespace deuce_test {
namespace {

class WorkspaceOf : public testing::TestWithParam<int> {};

TEST_P(WorkspaceOf, ExactSizeWorksWhateverItsBytes) {
  Sample sample(GetParam());
  deuce::DecodePlan plan(sample.config);
  const Workspace workspace(plan.workspace_bytes());
  plan.run(sample.args, workspace.data(), workspace.size());
  const std::vector<float> expected = sample.out;
  std::memset(workspace.data(), 0xff, workspace.size());
  std::fill(sample.out.begin(), sample.out.end(), -1.0F);
  plan.run(sample.args, workspace.data(), workspace.size());
  EXPECT_EQ(sample.out, expected);
}

TEST_P(WorkspaceOf, SizeDependsOnTheConfigOnly) {
  Sample sample(GetParam());
  std::size_t first = 0, second = 1, control = 0;
  EXPECT_EQ(deuce_decode_workspace_size(&sample.config, &first, &control), DEUCE_OK);
  EXPECT_EQ(deuce_decode_workspace_size(&sample.config, &second, nullptr), DEUCE_OK);
  EXPECT_EQ(first, second);
  EXPECT_LE(control, first);
}

TEST_P(WorkspaceOf, KeptControlPartGivesTheSameBits) {
  Sample sample(GetParam());
  deuce::DecodePlan plan(sample.config);
  const Workspace workspace(plan.workspace_bytes());
  plan.run(sample.args, workspace.data(), workspace.size());
  const std::vector<float> expected = sample.out;

  sample.config.flags = DEUCE_FLAG_WORKSPACE_KEPT;
  deuce::DecodePlan kept(sample.config);
  const Workspace own(kept.workspace_bytes());
  std::memset(own.data(), 0xff, own.size());
  kept.init_workspace(own.data(), own.size());
  for (int i = 0; i < 3; ++i) {  // each run leaves the control part as it found it
    std::fill(sample.out.begin(), sample.out.end(), -1.0F);
    kept.run(sample.args, own.data(), own.size());
    EXPECT_EQ(sample.out, expected);
  }
}

std::string test_name(const testing::TestParamInfo<int>& row) { return backend_name(row.param); }

INSTANTIATE_TEST_SUITE_P(Host, WorkspaceOf, testing::ValuesIn(host_backends()), test_name);

class WorkspaceRefusal : public testing::Test {
 protected:
  WorkspaceRefusal() : plan_(sample_.config, {.bytes = 4000, .control_bytes = 100}) {}

  void expect(void* workspace, std::size_t bytes, deuce_status status, const char* field,
              const char* sentence) {
    EXPECT_EQ(deuce_decode_run(plan_.handle(), &sample_.args, workspace, bytes, nullptr), status);
    EXPECT_STREQ(deuce_last_error(), sentence);
    EXPECT_STREQ(deuce_last_error_field(), field);
    EXPECT_EQ(plan_.backend().runs, 0);
  }

  Sample sample_{DEUCE_BACKEND_REFERENCE};
  FakePlan plan_;
};

TEST_F(WorkspaceRefusal, OneByteShortNamesBothNumbers) {
  const Workspace workspace(4000);
  expect(workspace.data(), 3999, DEUCE_WORKSPACE_TOO_SMALL, "bytes",
         "workspace has 3999 bytes: this plan needs 4000");
}

TEST_F(WorkspaceRefusal, NullIsRefused) {
  expect(nullptr, 4000, DEUCE_INVALID_ARGUMENT, "workspace",
         "workspace is null: this plan needs 4000 bytes");
}

TEST_F(WorkspaceRefusal, MisalignedIsRefused) {
  expect(reinterpret_cast<void*>(std::uintptr_t{0x10080}), 4000, DEUCE_INVALID_ARGUMENT,
         "workspace", "workspace is 0x10080: it must be a multiple of 256 bytes");
}

TEST_F(WorkspaceRefusal, BadDataLeavesTheControlPartUntouched) {
  const Workspace workspace(4000);
  std::memset(workspace.data(), 0x5a, workspace.size());
  sample_.kv_len[0] = -1;
  EXPECT_EQ(deuce_decode_run(plan_.handle(), &sample_.args, workspace.data(), 4000, nullptr),
            DEUCE_INVALID_ARGUMENT);
  EXPECT_EQ(std::count(workspace.data(), workspace.data() + 4000, std::byte{0x5a}), 4000);
}

TEST_F(WorkspaceRefusal, OnlyTheControlPartIsCleared) {
  const Workspace workspace(4000);
  std::memset(workspace.data(), 0x5a, workspace.size());
  EXPECT_EQ(deuce_decode_run(plan_.handle(), &sample_.args, workspace.data(), 4000, nullptr),
            DEUCE_OK);
  EXPECT_EQ(std::count(workspace.data(), workspace.data() + 100, std::byte{0}), 100);
  EXPECT_EQ(std::count(workspace.data() + 100, workspace.data() + 4000, std::byte{0x5a}), 3900);
}

}  // namespace
}  // namespace deuce_test
