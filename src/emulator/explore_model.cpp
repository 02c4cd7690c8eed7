// SPDX-License-Identifier: Apache-2.0
// States and moves of a recorded kernel; see explore_model.h.
#include "emulator/explore_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace deuce::emulator {
namespace {

constexpr std::size_t kMostAsync = 64, kMostActors = 16, kMostSteps = 255;

std::vector<WarpRange> shrunk(std::vector<WarpRange> roles, int quarters) {
  for (WarpRange& range : roles) range.warps = std::min(range.warps, quarters);
  return roles;
}

/// The events of one part of a kernel.
class Filter {
 public:
  Filter(const Recording& recording, Part part) : recording_(recording), part_(part) {
    pieces_ = recording.cells_of("piece") | recording.cells_of("total tiles");
  }
  /// False: the event belongs to another part. Accesses keep the cells of this one.
  bool keeps(Event& event) const {
    if (part_ == Part::whole) return true;
    if (event.kind == Event::Kind::access) {
      const Cells mine = part_ == Part::pieces ? pieces_ : ~pieces_;
      event.access.reads &= mine;
      event.access.writes &= mine;
      return event.access.any();
    }
    if (event.barrier < 0) return part_ == Part::tiles;  // an MMA
    const std::string& name = recording_.barriers[static_cast<std::size_t>(event.barrier)].name;
    return name.starts_with("piece_") == (part_ == Part::pieces);
  }

 private:
  const Recording& recording_;
  Part part_;
  Cells pieces_;
};

Actor make_actor(const std::vector<Event>& events, int warp, Role role, const Filter& filter) {
  Actor actor{.warp = warp, .role = role, .before = {}, .steps = {}};
  bool cut = true;  // the next synchronisation starts a step
  for (std::size_t i = 0; i < events.size(); ++i) {
    Event event = events[i];
    if (!filter.keeps(event)) continue;
    if (event.kind == Event::Kind::access) {
      (actor.steps.empty() ? actor.before : actor.steps.back().after).add(event.access);
      cut = true;
      continue;
    }
    const bool waits = event.kind == Event::Kind::wait;
    if (cut || (waits && !actor.steps.back().signals.empty())) actor.steps.emplace_back();
    cut = false;
    Step& step = actor.steps.back();
    (waits ? step.waits : step.signals).push_back(event);
    step.last_event = i;
    if (waits || step.signals.size() == 1) step.begins = i;
  }
  return actor;
}

bool clashes(const Access& a, const Access& b) { return a.clash(b).any(); }

}  // namespace

Model make_model(const Recording& recording, int quarters, Part part) {
  const Filter filter(recording, part);
  Model model;
  model.recording = &recording;
  model.fault = recording.fault;
  const KernelSpec& kernel = *recording.kernel;
  const std::vector<WarpRange> roles = shrunk(kernel.roles, quarters);
  uint32_t kept = 0;
  for (std::size_t warp = 0; warp < recording.warps.size(); ++warp) {
    const Role role = role_of(static_cast<int>(warp), roles);
    if (role == Role::idle || recording.warps[warp].empty()) continue;
    kept |= 1u << warp;
    Actor actor = make_actor(recording.warps[warp], static_cast<int>(warp), role, filter);
    if (actor.steps.empty()) continue;
    model.actors.push_back(std::move(actor));
    if (model.actors.back().steps.size() > kMostSteps) model.fault = "a program is too long";
  }
  if (model.actors.size() > kMostActors) model.fault = "too many warps";
  for (const RecordedBarrier& recorded : recording.barriers) {
    ModelBarrier barrier{.name = recorded.name};
    if (recorded.named >= 0) {
      barrier.expected = 32 * __builtin_popcount(recorded.warps & kept);
    } else {
      const Edge& edge = kernel.edges[static_cast<std::size_t>(recorded.edge)];
      barrier.expected = arrivals(edge, roles);
      barrier.open_at_exit = edge.open_at_exit;
      barrier.bytes = std::any_of(edge.arrives.begin(), edge.arrives.end(),
                                  [](const Arrival& arrival) { return arrival.by == By::bytes; });
    }
    model.barriers.push_back(barrier);
  }
  return model;
}

Moves::Moves(const Model& model)
    : model_(model), commits_on_(model.barriers.size()), copies_on_(model.barriers.size()) {
  for (const Actor& actor : model.actors) {
    std::vector<Prefix> list(1);
    list[0].arrivals.resize(model.barriers.size());
    for (const Step& step : actor.steps) {
      Prefix next = list.back();
      for (const Event& event : step.signals) {
        const Async async{event.barrier, event.access, event.tile,
                          event.content, event.site,   event.kv_block};
        const auto barrier = static_cast<std::size_t>(std::max(0, event.barrier));
        switch (event.kind) {
          case Event::Kind::arrive: next.arrivals[barrier] += event.count; break;
          case Event::Kind::commit:
            commits_on_[barrier] |= uint64_t{1} << commits_.size();
            next.commits |= uint64_t{1} << commits_.size();
            mmas_before_commit_.push_back(static_cast<int>(mmas_.size()));
            commits_.push_back(async);
            break;
          case Event::Kind::copy:
            copies_on_[barrier] |= uint64_t{1} << copies_.size();
            next.copies |= uint64_t{1} << copies_.size();
            next.contents.emplace_back(event.tile, event.content);
            copies_.push_back(async);
            break;
          case Event::Kind::mma:
            mmas_.push_back(async);
            next.mmas = static_cast<int>(mmas_.size());
            break;
          case Event::Kind::wait:
          case Event::Kind::access: break;
        }
      }
      list.push_back(std::move(next));
    }
    prefixes_.push_back(std::move(list));
  }
}

std::string Moves::bounds() const {
  const bool fits = commits_.size() <= kMostAsync && copies_.size() <= kMostAsync;
  return fits ? "" : "more commits or copies than the search can hold";
}

// Completed phases of a barrier: what has been signalled so far, divided by what a phase takes.
int Moves::phases(const State& state, int index) const {
  const ModelBarrier& barrier = model_.barriers[static_cast<std::size_t>(index)];
  const auto b = static_cast<std::size_t>(index);
  if (barrier.expected == 0) return 0;  // of warps that take no part
  int arrived = __builtin_popcountll(state.commits & commits_on_[b]);
  for (std::size_t a = 0; a < model_.actors.size(); ++a) arrived += prefix(state, a).arrivals[b];
  const int phases = arrived / barrier.expected;
  if (!barrier.bytes) return phases;
  return std::min(phases, __builtin_popcountll(state.copies & copies_on_[b]));
}

const Access& Moves::held(const State& state, std::size_t actor) const {
  const Actor& who = model_.actors[actor];
  const std::size_t taken = state.taken[actor];
  return taken == 0 ? who.before : who.steps[taken - 1].after;
}

uint64_t Moves::open_commits(const State& state) const {
  uint64_t issued = 0;
  for (std::size_t a = 0; a < model_.actors.size(); ++a) issued |= prefix(state, a).commits;
  return issued & ~state.commits;
}

uint64_t Moves::open_copies(const State& state) const {
  uint64_t issued = 0;
  for (std::size_t a = 0; a < model_.actors.size(); ++a) issued |= prefix(state, a).copies;
  return issued & ~state.copies;
}

// A delivered commit says that every MMA issued before it is done.
int Moves::finished_mmas(const State& state) const {
  if (state.commits == 0) return 0;
  return mmas_before_commit_[static_cast<std::size_t>(63 - __builtin_clzll(state.commits))];
}

bool Moves::can_step(const State& state, std::size_t actor, Violation& violation) const {
  const Actor& who = model_.actors[actor];
  if (state.taken[actor] == who.steps.size()) return false;
  for (const Event& wait : who.steps[state.taken[actor]].waits) {
    const int complete = phases(state, wait.barrier);
    const std::string& name = model_.barriers[static_cast<std::size_t>(wait.barrier)].name;
    if (complete > wait.phase + 1) {
      violation = {"overtaken", name,
                   fmt::format("{} waits for phase {} of {}, {} are complete",
                               where(actor, wait.site), wait.phase, name, complete)};
      return false;
    }
    if ((complete & 1) == (wait.phase & 1)) return false;
    if (complete != wait.phase + 1) {
      violation = {"early", name,
                   fmt::format("{} waits for phase {} of {} and passes with {} complete",
                               where(actor, wait.site), wait.phase, name, complete)};
      return false;
    }
  }
  return true;
}

std::vector<Move> Moves::enabled(const State& state, Violation& violation) const {
  std::vector<Move> moves;
  for (std::size_t a = 0; a < model_.actors.size() && violation.kind.empty(); ++a) {
    if (can_step(state, a, violation)) moves.push_back({Move::Kind::step, static_cast<uint8_t>(a)});
  }
  const auto deliver = [&](uint64_t open, Move::Kind kind) {
    for (; open != 0; open &= open - 1) {
      moves.push_back({kind, static_cast<uint8_t>(__builtin_ctzll(open))});
    }
  };
  deliver(open_commits(state), Move::Kind::commit);
  deliver(open_copies(state), Move::Kind::copy);
  return moves;
}

State Moves::after(const State& state, Move move) const {
  State next = state;
  switch (move.kind) {
    case Move::Kind::step: ++next.taken[move.index]; break;
    case Move::Kind::commit: next.commits |= uint64_t{1} << move.index; break;
    case Move::Kind::copy: next.copies |= uint64_t{1} << move.index; break;
  }
  return next;
}

std::string Moves::where(std::size_t actor, Site site) const {
  const Actor& who = model_.actors[actor];
  const std::string_view file = site.file == nullptr ? "?" : site.file;
  return fmt::format("{} warp {} ({}:{})", name_of(who.role), who.warp,
                     file.substr(file.rfind('/') + 1), site.line);
}

int Moves::content_of(const State& state, int tile) const {
  int content = -1;
  for (std::size_t a = 0; a < model_.actors.size(); ++a) {
    for (const auto& [where, what] : prefix(state, a).contents) {
      if (where == tile) content = what;
    }
  }
  return content;
}

// What touches cells at the same time as `access`, by another side.
Violation Moves::race(const State& state, std::size_t actor, const Access& access, bool is_mma,
                      const std::string& name) const {
  const auto found = [&](const Access& other, const std::string& by) -> Violation {
    const Cells cells = access.clash(other);
    const std::string cell = model_.recording->cell_name(cells._Find_first());
    return {"race", cell, fmt::format("{} meets {} at {}", name, by, cell)};
  };
  for (std::size_t a = 0; a < model_.actors.size(); ++a) {
    if (a == actor || !clashes(access, held(state, a))) continue;
    const std::size_t taken = state.taken[a];
    const Step* step = taken == 0 ? nullptr : &model_.actors[a].steps[taken - 1];
    const Event* last = step == nullptr          ? nullptr
                        : !step->signals.empty() ? &step->signals.back()
                                                 : &step->waits.back();
    return found(held(state, a), where(a, last == nullptr ? Site{} : last->site));
  }
  for (uint64_t open = open_copies(state); open != 0; open &= open - 1) {
    const Async& copy = copies_[static_cast<std::size_t>(__builtin_ctzll(open))];
    if (&access != &copy.access && clashes(access, copy.access)) {
      return found(copy.access, "a copy in flight");
    }
  }
  if (is_mma) return {};  // MMAs of one thread run in issue order
  int issued = 0;
  for (std::size_t a = 0; a < model_.actors.size(); ++a) {
    issued = std::max(issued, prefix(state, a).mmas);
  }
  for (int i = finished_mmas(state); i < issued; ++i) {
    const Async& mma = mmas_[static_cast<std::size_t>(i)];
    if (clashes(access, mma.access)) {
      return found(mma.access, fmt::format("an MMA of block {} in flight", mma.kv_block));
    }
  }
  return {};
}

Violation Moves::judge(const State& state, Move move) const {
  if (move.kind != Move::Kind::step) return {};
  const std::size_t actor = move.index;
  const std::size_t taken = state.taken[actor];
  const Step& step = model_.actors[actor].steps[taken - 1];
  const Site site = step.signals.empty() ? step.waits.back().site : step.signals.back().site;
  Violation violation = race(state, actor, held(state, actor), false, where(actor, site));
  const Prefix &before = prefixes_[actor][taken - 1], &now = prefixes_[actor][taken];
  for (uint64_t rest = now.copies & ~before.copies; rest != 0; rest &= rest - 1) {
    if (!violation.kind.empty()) return violation;
    const Async& copy = copies_[static_cast<std::size_t>(__builtin_ctzll(rest))];
    violation = race(state, actor, copy.access, false, "a copy by " + where(actor, copy.site));
  }
  for (int i = before.mmas; i < now.mmas; ++i) {
    if (!violation.kind.empty()) return violation;
    const Async& mma = mmas_[static_cast<std::size_t>(i)];
    violation =
        race(state, actor, mma.access, true, fmt::format("an MMA of block {}", mma.kv_block));
    if (violation.kind.empty() && content_of(state, mma.tile) != mma.content) {
      const std::string cell = model_.recording->cell_name(static_cast<std::size_t>(mma.tile));
      violation = {"operand", cell,
                   fmt::format("an MMA of block {} reads another tile in {}", mma.kv_block, cell)};
    }
  }
  return violation;
}

bool Moves::all_left(const State& state) const {
  for (std::size_t a = 0; a < model_.actors.size(); ++a) {
    if (state.taken[a] != model_.actors[a].steps.size()) return false;
  }
  return true;
}

Violation Moves::judge_leaving(const State& state) const {
  if (!all_left(state)) return {};
  if (open_commits(state) == 0 && open_copies(state) == 0) return {};
  return {"exit", "", "a commit or a copy is in flight when the last warp leaves"};
}

Violation Moves::judge_end(const State& state) const {
  if (all_left(state)) {
    for (std::size_t b = 0; b < model_.barriers.size(); ++b) {
      const ModelBarrier& barrier = model_.barriers[b];
      int arrived = __builtin_popcountll(state.commits & commits_on_[b]);
      for (std::size_t a = 0; a < model_.actors.size(); ++a) {
        arrived += prefix(state, a).arrivals[b];
      }
      const bool left_over = barrier.expected > 0 && arrived % barrier.expected != 0;
      if (!left_over || barrier.open_at_exit) continue;
      return {"left over", barrier.name, barrier.name + " is left in mid-phase"};
    }
    return {};
  }
  std::string text = "nothing can move", edge;
  for (std::size_t a = 0; a < model_.actors.size(); ++a) {
    const Actor& who = model_.actors[a];
    if (state.taken[a] == who.steps.size()) continue;
    for (const Event& wait : who.steps[state.taken[a]].waits) {
      if (phases(state, wait.barrier) == wait.phase + 1) continue;
      edge = model_.barriers[static_cast<std::size_t>(wait.barrier)].name;
      text += fmt::format("\n  {} waits for phase {} of {}", where(a, wait.site), wait.phase, edge);
    }
  }
  return {"deadlock", edge, text};
}

std::string Moves::text(const State& before, Move move) const {
  switch (move.kind) {
    case Move::Kind::commit:
      return fmt::format(
          "commit arrives on {}",
          model_.barriers[static_cast<std::size_t>(commits_[move.index].barrier)].name);
    case Move::Kind::copy:
      return fmt::format(
          "copy completes on {}",
          model_.barriers[static_cast<std::size_t>(copies_[move.index].barrier)].name);
    case Move::Kind::step: break;
  }
  const Step& step = model_.actors[move.index].steps[before.taken[move.index]];
  const Event& first = step.waits.empty() ? step.signals.front() : step.waits.front();
  std::string text = where(move.index, first.site);
  for (const Event& wait : step.waits) {
    text += fmt::format(", passes {} phase {}",
                        model_.barriers[static_cast<std::size_t>(wait.barrier)].name, wait.phase);
  }
  for (const Event& signal : step.signals) {
    if (signal.kind == Event::Kind::mma) {
      text += ", issues MMAs";
    } else {
      const std::string& name = model_.barriers[static_cast<std::size_t>(signal.barrier)].name;
      text += fmt::format(", {} {}",
                          signal.kind == Event::Kind::arrive ? "arrives on"
                          : signal.kind == Event::Kind::copy ? "copies for"
                                                             : "commits to",
                          name);
    }
  }
  return text;
}

}  // namespace deuce::emulator
