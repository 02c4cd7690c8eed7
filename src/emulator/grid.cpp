// SPDX-License-Identifier: Apache-2.0
// Event loop of the emulator; see grid.h.
#include "emulator/grid.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

namespace deuce::emulator {

Grid::Grid(const Launch& launch, const Options& options)
    : launch_(launch),
      options_(options),
      schedule_(options.run),
      timing_{options.band, launch.kernel->chip, options.fitted} {
  result_.edges.resize(launch.kernel->edges.size());
  for (int i = 0; i < launch.blocks; ++i) {
    const bool runs = options.only_block < 0 || options.only_block == i;
    blocks_.push_back(runs ? std::make_unique<Block>(*this, launch, options, i) : nullptr);
    if (runs) running_.push_back(blocks_.back().get());
  }
}

void Grid::queue_warp(int block, int warp, double at) {
  events_.push({at, number_++, block, warp, 0});
}

uint32_t Grid::new_async() {
  if (free_async_.empty()) {
    async_.push_back(std::make_unique<AsyncOp>());
    return static_cast<uint32_t>(async_.size() - 1);
  }
  const uint32_t id = free_async_.back();
  free_async_.pop_back();
  return id;
}

void Grid::queue_async(int block, uint32_t id, double at) {
  Queue& queue = schedule_.lazy() ? deferred_ : events_;
  queue.push({schedule_.lazy() ? 0 : at, number_++, block, -1, id});
}

void Grid::handle(const Event& event) {
  now_ = std::max(now_, event.at);
  Block& block = *blocks_[static_cast<std::size_t>(event.block)];
  if (event.warp >= 0) {
    block.step(event.warp);
    return;
  }
  block.complete(*async_[event.id]);
  free_async_.push_back(event.id);
}

RunResult Grid::run() {
  for (Block* block : running_) block->start();
  while (!stopped_ && !(events_.empty() && deferred_.empty())) {
    if (++result_.steps > options_.step_limit) {
      report().mark_incomplete(fmt::format("{} steps were not enough", options_.step_limit));
      break;
    }
    Queue& queue = events_.empty() ? deferred_ : events_;
    const Event event = queue.top();
    queue.pop();
    handle(event);
  }
  end_run();
  return std::move(result_);
}

void Grid::end_run() {
  result_.cycles = now_;
  for (Block* block : running_) {
    if (options_.recorder != nullptr) block->end_trace();
    block->count_phases(result_.edges);
    result_.rescales += block->rescales();
  }
  if (options_.recorder != nullptr) {
    options_.recorder->close(now_, facts_of(timing_.chip).clock_hz);
  }
  if (stopped_ || !report().incomplete_reason().empty()) return;
  std::string graph;
  std::set<std::string> edges;  // that the warps of a cycle wait on
  for (Block* block : running_) {
    if (!block->finished()) graph += block->wait_for_graph(edges);
  }
  if (!graph.empty()) {
    report().add({"deadlock", Severity::error, fmt::format("{}", fmt::join(edges, ", ")),
                  fmt::format("no warp can run and nothing is pending\n{}  replay: {}", graph,
                              replay_text(options_))});
    return;
  }
  for (Block* block : running_) block->check_exit();
}

const GlobalRange* Grid::range_of(const void* address, std::size_t bytes) const {
  for (const GlobalRange& range : launch_.memory) {
    if (range.contains(address, bytes)) return &range;
  }
  return nullptr;
}

Sector& Grid::sector(const void* address) {
  return sectors_[reinterpret_cast<uintptr_t>(address) / 32];
}

void EdgeUse::add(const EdgeUse& other) {
  phases += other.phases;
  waits += other.waits;
  laps = std::max(laps, other.laps);
}

uint32_t Grid::add_record(const AccessRecord& record) {
  records_.push_back(record);
  return static_cast<uint32_t>(records_.size() - 1);
}

RunResult run(const Launch& launch, const Options& options) { return Grid(launch, options).run(); }

}  // namespace deuce::emulator
