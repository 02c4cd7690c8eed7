// SPDX-License-Identifier: Apache-2.0
// P20, P22, P26 and P27: the workspace holds exactly what is needed and remembers nothing, a
// refused call leaves no trace, and every call ends.
#include <algorithm>
#include <limits>

#include "kernel/backends.h"
#include "kernel/values.h"
#include "plan/forced_workers.h"

namespace deuce::testing {
namespace {

class Contract : public Backends {};

Case drawn_cutting(const Subject& subject, uint64_t seed) {
  Case drawn = within_reach(subject, draw_case(seed, 3e5));
  drawn.score_slots = 0;
  return drawn;
}

// Witness: vllm-project/vllm#40023. Less memory asked for than used; the guards of the workspace
// and its exact size show it.
TEST_P(Contract, TheQueriedWorkspaceSufficesAndOneByteLessIsRefused) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Case drawn = drawn_cutting(subject(), seed);
    Instance exact(drawn);
    const Outcome enough = run(subject(), exact);
    if (enough.refused()) continue;
    ASSERT_EQ(enough.status, DEUCE_OK) << enough.sentence;
    ASSERT_EQ(exact.frame_violation(), "") << describe(drawn);
    if (exact.buffers().back().bytes() == 0) continue;
    Instance less(drawn);
    const Outcome short_of_one = run(subject(), less, {.workspace_excess = -1});
    if (drawn.requests.empty()) continue;
    ASSERT_EQ(short_of_one.status, DEUCE_WORKSPACE_TOO_SMALL);
    ASSERT_TRUE(less.results_untouched());
    ++refused;
  }
  EXPECT_GT(refused, 5);
}

// Witness: vllm-project/vllm PR#25520. Counters that must be zero, in memory shared with others.
TEST_P(Contract, WorkspaceBytesCarryNothingIn) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Case drawn = drawn_cutting(subject(), seed);
    Instance ones(drawn), zeros(drawn), kept(drawn);
    const Outcome a = run(subject(), ones, {.workspace_fill = 0xFF});
    const Outcome b = run(subject(), zeros, {.workspace_fill = 0});
    const Outcome c =
        run(subject(), kept, {.flags = DEUCE_FLAG_WORKSPACE_KEPT, .workspace_fill = 0x7F});
    ASSERT_EQ(a.out, b.out) << describe(drawn);
    ASSERT_EQ(a.lse, b.lse) << describe(drawn);
    if (c.refused()) continue;
    ASSERT_EQ(a.out, c.out) << describe(drawn);
  }
}

// Witness: flashinfer-ai/flashinfer#1046. Results that depend on what ran before.
TEST_P(Contract, PlansShareAWorkspaceInTurnAndRememberNothing) {
  constexpr std::size_t kBytes = std::size_t{1} << 28;
  GuardedBuffer shared(kBytes, 256);
  std::fill_n(shared.data(), kBytes, std::byte{0});
  const uint64_t plans = subject().runs_every_matrix() ? 30 : 120;
  for (uint64_t seed = 1; seed <= plans; ++seed) {
    const Case drawn = drawn_cutting(subject(), seed);
    Instance alone(drawn), in_turn(drawn);
    const Outcome expected = run(subject(), alone);
    if (leaves_out(subject().device != nullptr, "workspaces that nobody clears")) continue;
    if (expected.status != DEUCE_OK) continue;
    deuce_decode_config config = in_turn.config;
    config.backend = subject().backend;
    config.emulated_backend = subject().emulated_backend;
    config.flags = DEUCE_FLAG_WORKSPACE_KEPT;  // nobody clears in between
    forced_workers() = drawn.workers;
    deuce_decode_plan plan = nullptr;
    const deuce_status planned = deuce_decode_plan_create(&config, &plan);
    forced_workers() = 0;
    if (planned != DEUCE_OK) continue;
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_EQ(deuce_decode_run(plan, &in_turn.args, shared.data(), kBytes, nullptr), DEUCE_OK)
          << deuce_last_error();
      ASSERT_EQ(in_turn.output_bits(), expected.out) << describe(drawn);
    }
    deuce_decode_plan_destroy(plan);
  }
}

// Witnesses: Dao-AILab/flash-attention#2760, huggingface/candle#3603. Workers that disagree about
// the work never return; the watchdog of run() ends the test.
TEST_P(Contract, EveryRaggedBatchEnds) {
  Rng rng(1);
  const int rounds = subject().is_slow() ? 200 : 4000;
  for (int round = 0; round < rounds; ++round) {
    Case ragged = within_reach(subject(), draw_case(1000 + round, 2e4));
    ragged.head_dim_qk = ragged.head_dim_v = 64;
    ragged.group = std::min(ragged.group, 8);
    Instance instance(ragged);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) continue;
    ASSERT_EQ(outcome.status, DEUCE_OK) << outcome.sentence;
    ASSERT_EQ(instance.frame_violation(), "") << describe(ragged);
  }
  for (const int64_t first : {1559, 1743, 127, 509}) {
    for (const int64_t second : {1559, 2, 131, 1021}) {
      Case primes;
      primes.requests = requests_of({first, second});
      ASSERT_EQ(check_if_served(subject(), primes), "");
    }
  }
}

/// A call with one wrong datum that the host can see.
struct BadDatum {
  const char* field;
  std::function<void(Case&)> shape;
  std::function<void(Instance&)> damage;
};

void overwrite(const int32_t* array, int64_t index, int32_t value) {
  const_cast<int32_t*>(array)[index] = value;
}

// Witnesses: microsoft/onnxruntime PR#32391, facebookresearch/xformers#1122,
// pegainfer-project/pegainfer#291.
TEST_P(Contract, ContradictoryDataIsRefusedBeforeAnythingIsWritten) {
  if (leaves_out(subject().device != nullptr, "all"))
    GTEST_SKIP() << "found on the device: see the GPU tests";
  const auto paged = [](Case& c) { c.page_size = 16; };
  const auto indptr = [](Case& c) { c.page_size = 16, c.indptr = true, c.give_kv_len = false; };
  const auto plain = [](Case&) {};
  const std::vector<BadDatum> data{
      {"block_table", paged, [](Instance& i) { overwrite(i.args.block_table, 0, -1); }},
      {"block_table", paged,
       [](Instance& i) { overwrite(i.args.block_table, 1, i.args.num_pages); }},
      {"kv_len", paged,
       [](Instance& i) { overwrite(i.args.kv_len, 1, 16 * i.args.block_table_columns + 1); }},
      {"kv_len", plain,
       [](Instance& i) {
         overwrite(i.args.kv_len, 2, static_cast<int32_t>(i.args.cache_slots) + 1);
       }},
      {"kv_len", plain, [](Instance& i) { overwrite(i.args.kv_len, 0, -1); }},
      {"cache_row", plain, [](Instance& i) { overwrite(i.args.cache_row, 1, i.args.num_pages); }},
      {"cache_row", plain, [](Instance& i) { overwrite(i.args.cache_row, 0, -1); }},
      {"kv_start", [](Case& c) { c.requests[0].kv_start = 1; },
       [](Instance& i) { overwrite(i.args.kv_start, 0, 101); }},
      {"cu_q_len", [](Case& c) { c.packed_q = true; },
       [](Instance& i) { overwrite(i.args.cu_q_len, 1, 100); }},
      {"cu_q_len", [](Case& c) { c.packed_q = true; },
       [](Instance& i) { overwrite(i.args.cu_q_len, 2, 0); }},
      {"last_page_len", indptr, [](Instance& i) { overwrite(i.args.last_page_len, 0, 17); }},
      {"last_page_len", indptr, [](Instance& i) { overwrite(i.args.last_page_len, 0, 0); }},
      {"page_indices", indptr, [](Instance& i) { overwrite(i.args.page_indices, 2, -5); }},
  };
  for (const BadDatum& datum : data) {
    Case base;
    base.requests = requests_of({100, 37, 64}, 2);
    datum.shape(base);
    Instance instance(base);
    instance.thaw();
    datum.damage(instance);
    const Outcome outcome = run(subject(), instance);
    if (outcome.refused()) continue;
    EXPECT_EQ(outcome.status, DEUCE_INVALID_ARGUMENT) << datum.field;
    EXPECT_EQ(outcome.field, datum.field) << outcome.sentence;
    EXPECT_TRUE(instance.results_untouched()) << datum.field;
  }
}

DEUCE_ON_EVERY_BACKEND(Contract);

}  // namespace
}  // namespace deuce::testing
