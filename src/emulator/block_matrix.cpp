// SPDX-License-Identifier: Apache-2.0
// ldmatrix and mma.sync of an emulated CTA; see block.h. Both execute once for a warp. ldmatrix
// reads by the generic proxy, and what it reads must be the operand that the warp says it works on.
#include <fmt/format.h>

#include <algorithm>

#include "emulator/grid.h"
#include "emulator/matrix.h"

namespace deuce::emulator {
namespace {

constexpr uint32_t kRowBytes = 16;

}  // namespace

void Block::note_operands(const Lane& lane, const trace::At& at) {
  if (!kernel_.traces_operands) return;
  Warp& warp = warp_of(lane);
  switch (at.event) {
    case trace::Event::tma_issue_K:
    case trace::Event::tma_issue_V:
      warp.mark = at.event == trace::Event::tma_issue_K ? 'k' : 'v';
      warp.mark_block = warp.kv_block = at.block;
      break;
    case trace::Event::wait_K: warp.kv_block = at.block; break;
    case trace::Event::mma_issue_QK:
    case trace::Event::mma_issue_PV:
      warp.expected = at.event == trace::Event::mma_issue_QK ? 'k' : 'v';
      warp.expected_block = at.block;
      break;
    default: break;
  }
}

double Block::load_matrices(Warp& warp, const Group& group) {
  const Op& first = *group.first;
  note_access(warp, group.mask);
  const uint32_t record = shadow_.add_record(record_of(warp, first));
  const Accessor by{&warp.clock, warp_component(warp.index), warp.sequence, record, false, true};
  std::array<std::array<const std::byte*, 8>, 4> rows{};
  each_lane(group.mask, [&](int l) {
    if (grid_.stopped()) return;
    const Op& call = op(warp, l);
    const uint32_t offset = shared_offset(call.source, kRowBytes, call, warp);
    if (grid_.stopped()) return;
    if (offset % kRowBytes != 0) {
      fault("H15", &warp, &call,
            fmt::format("row of a matrix at shared {:#x}, not a multiple of 16 bytes", offset));
      return;
    }
    clash(shadow_.read_shared(offset, kRowBytes, by), record, false);
    if (grid_.stopped() || !holds_operand(warp, offset, call)) return;
    rows[static_cast<std::size_t>(l / 8)][static_cast<std::size_t>(l % 8)] = shared() + offset;
  });
  if (grid_.stopped()) return 0;
  if (options_.values) {
    each_lane(group.mask, [&](int l) {
      auto* words = static_cast<uint32_t*>(op(warp, l).target);
      for (std::size_t i = 0; i < rows.size(); ++i) words[i] = matrix_word(rows[i], l, first.flag);
    });
  }
  finish_lanes(warp, group.mask);
  const Timing& timing = grid_.timing();
  const double now = grid_.now();
  matrix_port_free_ = std::max(matrix_port_free_, now) + timing(cost::kMatrixPort);
  // The first of a run is waited for; the others are on their way while MMAs issue, if there are
  // registers for them.
  const double issue =
      std::max(matrix_port_free_ - now - timing(cost::kMatrixPort), 0.0) + timing(cost::kIssue);
  const double exposed = warp.in_matrices && kernel_.loads_ahead ? 0 : timing(cost::kMatrixLoad);
  warp.in_matrices = true;
  return issue + exposed;
}

/// Whether a copied row is of the tensor and KV tile that the warp expects.
bool Block::holds_operand(const Warp& warp, uint32_t address, const Op& call) {
  const AccessRecord* writer = shadow_.writer(address);
  if (warp.expected == 0 || writer == nullptr || writer->tensor == 0) return true;
  if (writer->tensor == warp.expected && writer->tensor_block == warp.expected_block) return true;
  fault("H19", &warp, &call,
        fmt::format("{} holds {} of KV block {}, but {} of KV block {} is wanted\n{}",
                    place(address, false), writer->tensor, writer->tensor_block, warp.expected,
                    warp.expected_block, describe(*writer, "written by")),
        Severity::error, place(address, false));
  return false;
}

double Block::mma_sync(Warp& warp, const Group& group) {
  if (options_.values) {
    MatrixFragments fragments;
    each_lane(group.mask, [&](int l) {
      const Op& call = op(warp, l);
      const auto lane = static_cast<std::size_t>(l);
      fragments.a[lane] = static_cast<const uint32_t*>(call.source);
      fragments.b[lane] = call.words;
      fragments.d[lane] = static_cast<float*>(call.target);
    });
    multiply_16x8x16(fragments, group.first->flag);
  }
  finish_lanes(warp, group.mask);
  const Timing& timing = grid_.timing();
  const double now = grid_.now();
  double& busy = mma_free_[static_cast<std::size_t>(warp.index % 4)];
  const double begin = std::max(busy, now);
  busy = begin + timing(cost::kMmaSync);
  warp.values_at = std::max(warp.values_at, begin + timing(cost::kMmaLatency));
  warp.in_matrices = true;
  return busy - now;
}

}  // namespace deuce::emulator
