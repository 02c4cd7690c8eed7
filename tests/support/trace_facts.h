// SPDX-License-Identifier: Apache-2.0
// Facts and a small trace that the reader of files takes, for tests of what it does not take.
#pragma once

#include <utility>

#include "kernel/edges.h"
#include "trace/trace_file.h"

namespace deuce::test {

inline trace::Facts plausible_facts() {
  trace::Facts facts;
  facts.kernel = "blackwell";
  facts.problem = "one block";
  facts.chip = "B200 (model)";
  facts.clock_hz = 1e9;
  facts.head_dim = 64;
  facts.rows = 16;
  facts.score_slots = 2;
  facts.seed = 1;
  facts.costs = "best";
  facts.cycles = 1010;
  facts.untraced_cycles = 1000;
  facts.commit = "0123456789ab";
  return facts;
}

/// Six blocks by a load, an mma and two softmax warps, and what the units of the emulator show.
inline trace::TraceFile plausible_trace() {
  using trace::Agent;
  using trace::Event;
  using trace::Kind;
  trace::TraceFile file{plausible_facts(), {}};
  trace::Recorder recorder(trace::Level::full, 64);
  const auto warp = [&](int unit, Role role) -> trace::Slice& {
    return recorder.slice(0, Agent::warp, unit, static_cast<int>(role));
  };
  const auto range = [](trace::Slice& slice, Event event, int block, uint64_t from, uint64_t to) {
    slice.add(from, pack(Kind::begin, event, block % 2, block / 2, block));
    slice.add(to, pack(Kind::end, event, 0, 0, 0));
  };
  trace::Slice& life = warp(1, Role::softmax);
  life.add(0, pack(Kind::begin, Event::warp_lifetime, 0, 0, 0));
  for (int block = 0; block < 6; ++block) {
    const auto at = static_cast<uint64_t>(block) * 100;
    range(recorder.slice(0, Agent::copy, trace::copy_unit(0, block % 2)), Event::copy_K, block, at,
          at + 20);
    range(warp(0, Role::mma), Event::mma_wait_K, block, at + 10, at + 21);
    range(warp(0, Role::mma), Event::mma_issue_QK, block, at + 21, at + 30);
    range(recorder.slice(0, Agent::tensor_pipe, 0), Event::pipe_QK, block, at + 22, at + 40);
    recorder.slice(0, Agent::tensor_pipe, 0)
        .add(at + 40, pack(Kind::instant, Event::commit_s_ready, block % 2, block / 2, block));
    range(life, Event::sm_wait_S, block, at + 30, at + 41);
    range(life, Event::sm_compute, block, at + 41, at + 90);
    recorder.slice(0, Agent::memory_queue, 0).add(at, pack_value(Event::bytes_in_flight, 4096));
  }
  life.add(600, pack(Kind::end, Event::warp_lifetime, 0, 0, 0));
  recorder.close(600, file.facts.clock_hz);
  file.slices = recorder.take();
  return file;
}

}  // namespace deuce::test
