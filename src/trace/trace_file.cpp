// SPDX-License-Identifier: Apache-2.0
// Reader and writer of trace files; see trace_file.h.
#include "trace/trace_file.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace deuce::trace {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr char kMagic[kMagicBytes + 1] = "DEUCETRC";

nlohmann::json to_json(const Facts& facts) {
  return {{"format", kFormatVersion},
          {"label", facts.label},
          {"kernel", facts.kernel},
          {"problem", facts.problem},
          {"chip", facts.chip},
          {"simulated", facts.simulated},
          {"clock_hz", facts.clock_hz},
          {"level", facts.level == Level::full ? "full" : "edges"},
          {"head_dim", facts.head_dim},
          {"rows", facts.rows},
          {"score_slots", facts.score_slots},
          {"row_replicas", facts.row_replicas},
          {"kv_block", facts.kv_block},
          {"element_bytes", facts.element_bytes},
          {"seed", facts.seed},
          {"costs", facts.costs},
          {"cycles", facts.cycles},
          {"untraced_cycles", facts.untraced_cycles},
          {"self_cost_cycles", facts.self_cost},
          {"timer_step_ns", facts.timer_step_ns}};
}

Facts from_json(const nlohmann::json& json) {
  Facts facts;
  facts.label = json.at("label");
  facts.kernel = json.at("kernel");
  facts.problem = json.at("problem");
  facts.chip = json.at("chip");
  facts.simulated = json.at("simulated");
  facts.clock_hz = json.at("clock_hz");
  facts.level = json.at("level") == "full" ? Level::full : Level::edges;
  facts.head_dim = json.at("head_dim");
  facts.rows = json.at("rows");
  facts.score_slots = json.at("score_slots");
  facts.row_replicas = json.at("row_replicas");
  facts.kv_block = json.at("kv_block");
  facts.element_bytes = json.value("element_bytes", 2);  // older files have 16-bit caches alone
  facts.seed = json.at("seed");
  facts.costs = json.at("costs");
  facts.cycles = json.at("cycles");
  facts.untraced_cycles = json.at("untraced_cycles");
  facts.self_cost = json.at("self_cost_cycles");
  facts.timer_step_ns = json.at("timer_step_ns");
  return facts;
}

void append(std::string& out, const void* data, std::size_t bytes) {
  if (bytes > 0) out.append(static_cast<const char*>(data), bytes);
}

/// Copies from the front of `bytes`; false where too few are left.
bool take(std::string_view& bytes, void* to, std::size_t count) {
  if (bytes.size() < count) return false;
  if (count > 0) std::memcpy(to, bytes.data(), count);
  bytes.remove_prefix(count);
  return true;
}

Status damaged(const std::string& name, const char* what) {
  return invalid("trace", "{}: {}", name, what);
}

bool known(const SliceHeader& header) {
  return header.magic == kSliceMagic && header.version == kFormatVersion &&
         header.agent <= Agent::memory_queue && header.policy <= Policy::keep_newest;
}

}  // namespace

std::string encode(const TraceFile& trace) {
  const std::string facts = to_json(trace.facts).dump();
  const auto length = static_cast<uint32_t>(facts.size());
  const auto slices = static_cast<uint32_t>(trace.slices.size());
  std::string out(kMagic, kMagicBytes);
  append(out, &length, sizeof length);
  append(out, &slices, sizeof slices);
  out += facts;
  for (const Slice& slice : trace.slices) {
    append(out, &slice.header, sizeof slice.header);
    append(out, slice.records.data(), slice.records.size() * sizeof(Record));
  }
  return out;
}

Result<TraceFile> decode_trace(const std::string& bytes, const std::string& name) {
  std::string_view rest = bytes;
  char magic[kMagicBytes];
  uint32_t length = 0, slices = 0;
  if (!take(rest, magic, sizeof magic) || std::memcmp(magic, kMagic, sizeof magic) != 0) {
    return damaged(name, "not a trace of deuce");
  }
  if (!take(rest, &length, sizeof length) || !take(rest, &slices, sizeof slices) ||
      length > rest.size()) {
    return damaged(name, "the trace ends early");
  }
  TraceFile trace;
  try {
    const nlohmann::json json = nlohmann::json::parse(rest.substr(0, length));
    if (json.at("format") != kFormatVersion) {
      return damaged(name, "a trace of another format version");
    }
    trace.facts = from_json(json);
  } catch (const nlohmann::json::exception&) {
    return damaged(name, "the facts of the run cannot be read");
  }
  rest.remove_prefix(length);
  for (uint32_t i = 0; i < slices; ++i) {
    Slice slice;
    if (!take(rest, &slice.header, sizeof slice.header)) {
      return damaged(name, "the trace ends early");
    }
    if (!known(slice.header)) return damaged(name, "a slice has a header of another kind");
    const std::size_t kept = std::min(slice.header.wanted, slice.header.capacity);
    if (rest.size() / sizeof(Record) < kept) return damaged(name, "the trace ends early");
    slice.records.resize(kept);
    take(rest, slice.records.data(), kept * sizeof(Record));
    trace.slices.push_back(std::move(slice));
  }
  if (!rest.empty()) return damaged(name, "bytes behind the last slice");
  return trace;
}

}  // namespace deuce::trace
