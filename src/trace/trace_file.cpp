// SPDX-License-Identifier: Apache-2.0
// Reader and writer of trace files; see trace_file.h.
#include "trace/trace_file.h"

#include <algorithm>
#include <cstring>

#include "kernel/edges.h"

namespace deuce::trace {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr uint32_t kMostCtas = 4096;  // of one launch, several times those of a GPU
constexpr char kMagic[kMagicBytes + 1] = "DEUCETRC";

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
  return header.magic == kSliceMagic && header.agent <= Agent::memory_queue &&
         header.policy <= Policy::keep_newest && header.role <= static_cast<uint8_t>(Role::idle) &&
         header.cta < kMostCtas;
}

bool known(const Record& record) {
  return event_of(record.word) < Event::count && kind_of(record.word) <= Kind::next;
}

/// The next slice from the front of `bytes`, or what is wrong with it.
const char* take_slice(std::string_view& bytes, Slice& slice) {
  constexpr const char* kEndsEarly = "the trace ends early";
  if (!take(bytes, &slice.header, sizeof slice.header)) return kEndsEarly;
  if (!known(slice.header)) return "a slice has a header of another kind";
  if (slice.header.version != kFormatVersion) {
    return "its records are of another version than this deuce reads: record it again";
  }
  const std::size_t kept = std::min(slice.header.wanted, slice.header.capacity);
  if (bytes.size() / sizeof(Record) < kept) return kEndsEarly;
  slice.records.resize(kept);
  take(bytes, slice.records.data(), kept * sizeof(Record));
  const bool all_known = std::all_of(slice.records.begin(), slice.records.end(),
                                     [](const Record& record) { return known(record); });
  return all_known ? nullptr : "a record is of a kind or an event that this deuce does not know";
}

}  // namespace

std::string encode(const TraceFile& trace) {
  const std::string facts = encode_facts(trace.facts);
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
  Result<Facts> facts = decode_facts(rest.substr(0, length), name);
  if (!facts.ok()) return facts.status();
  TraceFile trace{std::move(facts.value()), {}};
  rest.remove_prefix(length);
  for (uint32_t i = 0; i < slices; ++i) {
    Slice slice;
    if (const char* fault = take_slice(rest, slice); fault != nullptr) return damaged(name, fault);
    trace.slices.push_back(std::move(slice));
  }
  if (!rest.empty()) return damaged(name, "bytes behind the last slice");
  return trace;
}

}  // namespace deuce::trace
