// SPDX-License-Identifier: Apache-2.0
// The static timeline: rows of warps and units, four steady KV blocks, all runs on one axis.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trace/figures.h"
#include "trace/svg.h"

namespace deuce::trace {
namespace {

constexpr double kWidth = 1280, kLeft = 128, kRight = 20, kRow = 26, kGap = 6;
constexpr int kBlocks = 4;

/// Words for a range; they are left out where they do not fit.
std::string label(const Range& range) {
  const std::string_view name = short_name(range.event);
  if (!name.empty()) return fmt::format("{} {}", name, range.block);
  const EventInfo& row = info(range.event);
  return std::string(row.flow == Flow::wait ? row.edge : row.name);
}

/// A container of the ranges that are drawn: life and item would cover everything.
bool is_container(Event event) {
  return event == Event::warp_lifetime || event == Event::work_item || event == Event::prologue ||
         event == Event::sm_load || event == Event::sm_max || event == Event::sm_exp;
}

std::vector<Range> softmax_of(const Timeline& run) {
  const Track* softmax = find_warp(run, Role::softmax);
  if (softmax == nullptr) softmax = find_warp(run, Role::attend);
  return softmax == nullptr ? std::vector<Range>{} : ranges_of(*softmax, Event::sm_compute);
}

class Picture {
 public:
  explicit Picture(const std::vector<Timeline>& runs)
      : svg_(kWidth, runs.size() > 1 ? "Timelines on one axis" : "Timeline") {
    for (const Timeline& run : runs) {
      windows_.push_back(steady_window(run));
      span_ = std::max(span_, windows_.back().length);
      whole_ = whole_ && windows_.back().length == run.length;
    }
    span_ = std::max(1.0, 1.02 * span_);  // of a run without a range there is only the frame
  }

  /// `agents`: only the tensor pipe and softmax.
  std::string draw(const std::vector<Timeline>& runs, bool two_rows) {
    svg_.text(kLeft, 24,
              two_rows ? "Tensor pipe and softmax, to scale"
              : whole_ ? "The whole run"
                       : "Four steady KV blocks",
              "h");
    y_ = 40;
    for (std::size_t i = 0; i < runs.size(); ++i) add(runs[i], windows_[i], two_rows);
    axis(runs);
    const auto is_hopper = [](const Timeline& run) {
      return find_warp(run, Role::attend) != nullptr;
    };
    legend(two_rows, std::all_of(runs.begin(), runs.end(), is_hopper));
    return svg_.finish(y_);
  }

 private:
  using Rows = std::vector<std::pair<const Track*, std::string>>;
  static constexpr int kAttendRows = 6;

  double x(double at, const Window& window) const {
    return kLeft + (at - window.begin) / span_ * (kWidth - kLeft - kRight);
  }

  void add(const Timeline& run, const Window& window, bool two_rows) {
    svg_.text(kLeft, y_ + 14, run.facts.label, "b");
    const double caption = std::max(90.0, 1.2 * text_width(run.facts.label) + 24);  // bold
    svg_.text(kLeft + caption, y_ + 14, caption_of(run.facts), "n");
    y_ += 22;
    brackets(run, window);
    Rows rows;
    const auto row = [&](const Track* track, const char* name) {
      if (track != nullptr) rows.emplace_back(track, name);
    };
    if (!two_rows) {
      row(find_warp(run, Role::load), "load");
      row(find_warp(run, Role::mma), "mma");
    }
    row(find_agent(run, Agent::tensor_pipe), "tensor pipe");
    row(find_warp(run, Role::softmax), "softmax");
    if (!two_rows) row(find_warp(run, Role::correction), "correction");
    add_attend_rows(run, rows);
    const double top = y_;
    for (const auto& [track, name] : rows) {
      svg_.rect(kLeft, y_, kWidth - kLeft - kRight, kRow, "band");
      svg_.text(kLeft - 8, y_ + 17, name, "e");
      draw_row(*track, window);
      y_ += kRow + kGap;
    }
    if (!two_rows) arrows(run, window, rows, top);
    y_ += 10;
  }

  /// Warps of Hopper that take tiles of their own; those that share one with others look alike.
  static void add_attend_rows(const Timeline& run, Rows& rows) {
    int warps = 0;
    while (find_warp(run, Role::attend, warps) != nullptr) ++warps;
    const int step = warps > kAttendRows ? warps / 2 : 1;  // one of each warpgroup
    for (int n = 0; n < warps; n += step) {
      rows.emplace_back(find_warp(run, Role::attend, n), fmt::format("attend {}", n));
    }
  }

  void brackets(const Timeline& run, const Window& window) {
    const std::vector<Range> blocks = softmax_of(run);
    for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
      const double from = x(blocks[i].begin, window), to = x(blocks[i + 1].begin, window);
      if (from < kLeft - 1 || to > kWidth - kRight + 1) continue;
      svg_.line(from + 1, y_ + 14, to - 1, y_ + 14, "x");
      for (const double end : {from + 1, to - 1}) svg_.line(end, y_ + 14, end, y_ + 19, "x");
      const int count = blocks[i + 1].block - blocks[i].block;
      const double cycles = blocks[i + 1].begin - blocks[i].begin;
      const std::string long_text =
          count > 1 ? fmt::format("blocks {} to {}: {:.0f} cycles each", blocks[i].block,
                                  blocks[i].block + count - 1, cycles / count)
                    : fmt::format("block {}: {:.0f} cycles", blocks[i].block, cycles);
      constexpr double kLetter = 6;  // pixels, about
      const bool fits = static_cast<double>(long_text.size()) * kLetter < to - from;
      svg_.text((from + to) / 2, y_ + 10, fits ? long_text : fmt::format("{:.0f}", cycles / count),
                "m");
    }
    y_ += 22;
  }

  void draw_row(const Track& track, const Window& window) {
    for (const Range& range : track.ranges) {
      if (is_container(range.event)) continue;
      const double from = std::max(kLeft, x(range.begin, window));
      const double to = std::min(kWidth - kRight, x(range.end, window));
      if (to <= from) continue;
      const double inset = nested(track, range) ? 5 : 0;
      const EventInfo& row = info(range.event);
      svg_.cell(from, y_ + inset, to - from, kRow - 2 * inset, color_of(range.event),
                fitting(range, to - from),
                fmt::format("{}, block {}, slot {}, {:.0f} cycles", row.name, range.block,
                            range.slot, range.end - range.begin));
    }
  }
  /// The words of a range, or its block alone where they would not fit. An issued PV keeps its
  /// words clear of the wait for the tail of P that lies on it.
  static std::string fitting(const Range& range, double width) {
    if (range.event == Event::mma_issue_PV) return {};
    std::string words = label(range);
    const bool narrow = text_width(words) > width - 2;
    return narrow && !short_name(range.event).empty() ? fmt::format("{}", range.block) : words;
  }
  /// Waits inside an issue: the tail of P.
  static bool nested(const Track&, const Range& range) {
    return range.event == Event::mma_wait_P_tail;
  }

  void arrows(const Timeline& run, const Window& window, const Rows& rows, double top) {
    const auto height = [&](std::size_t track) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].first == &run.tracks[track]) {
          return top + static_cast<double>(i) * (kRow + kGap) + kRow / 2;
        }
        // The last of four warps that do the same stands for the one that is shown.
        if (rows[i].first->role == run.tracks[track].role &&
            run.tracks[track].agent == Agent::warp && rows[i].first->agent == Agent::warp) {
          return top + static_cast<double>(i) * (kRow + kGap) + kRow / 2;
        }
      }
      return -1.0;
    };
    for (const Arrow& arrow : run.arrows) {
      const std::string_view kind = arrow.edge == "s_ready"    ? "ak"
                                    : arrow.edge == "po_ready" ? "ap"
                                    : arrow.edge == "o_ready"  ? "ao"
                                                               : "";
      const bool shown = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
        return row.first == &run.tracks[arrow.to_track];
      });
      if (kind.empty() || !shown || run.tracks[arrow.from_track].cta != 0) continue;
      const double from = x(arrow.from, window), to = x(arrow.to, window);
      if (from < kLeft || to > kWidth - kRight || height(arrow.from_track) < 0) continue;
      svg_.arrow(from, height(arrow.from_track), to, height(arrow.to_track), kind);
    }
  }

  void axis(const std::vector<Timeline>& runs) {
    double step = 100;
    while (span_ / step > 24) step *= step == 200 || step == 2000 ? 2.5 : 2;
    svg_.line(kLeft, y_, kWidth - kRight, y_, "x");
    for (double at = 0; at <= span_; at += step) {
      const double left = kLeft + at / span_ * (kWidth - kLeft - kRight);
      svg_.line(left, y_, left, y_ + 5, "x");
      svg_.text(left, y_ + 18, fmt::format("{:.0f}", at), "m");
    }
    svg_.text(kLeft, y_ + 34,
              fmt::format("cycles from the {}; 1000 cycles are {}; a number alone is the KV block",
                          whole_ ? "first record" : "start of the softmax of a steady block",
                          clocks_text(runs)),
              "n");
    y_ += 46;
  }

  /// "542 ns", or one for each run where they differ.
  static std::string clocks_text(const std::vector<Timeline>& runs) {
    const double hz = runs.front().facts.clock_hz;
    const auto ticks_alike = [hz](const Timeline& run) { return run.facts.clock_hz == hz; };
    if (std::all_of(runs.begin(), runs.end(), ticks_alike)) {
      return fmt::format("{:.0f} ns", 1e12 / hz);
    }
    std::string text;
    for (const Timeline& run : runs) {
      text += fmt::format("{}{:.0f} ns of {}", text.empty() ? "" : ", ", 1e12 / run.facts.clock_hz,
                          run.facts.label);
    }
    return text;
  }

  void legend(bool two_rows, bool hopper) {
    double at = kLeft;
    const auto entry = [&](std::string_view kind, std::string_view words) {
      svg_.rect(at, y_, 14, 14, kind);
      svg_.text(at + 19, y_ + 11, words, "s");
      at += 34 + text_width(words);
    };
    entry("qk", "QK");
    entry("sm", "softmax");
    entry("pv", "PV");
    if (!two_rows) {
      if (!hopper) entry("sum", "row sum");
      entry("load", "TMA issue");
      if (!hopper) entry("fix", "correction");
      entry("wait", "waiting for an edge");
    }
    if (!two_rows && !hopper) {
      for (const auto& [kind, words] :
           {std::pair{"ak", "s_ready"}, {"ap", "po_ready"}, {"ao", "o_ready"}}) {
        svg_.arrow(at, y_ + 8, at + 22, y_ + 8, kind);
        svg_.text(at + 28, y_ + 11, words, "s");
        at += 44 + text_width(words);
      }
    }
    y_ += 26;
  }

  Svg svg_;
  std::vector<Window> windows_;
  double span_ = 0, y_ = 0;
  bool whole_ = true;  // no run is long enough for steady blocks
};

}  // namespace

Window steady_window(const Timeline& run) {
  const std::vector<Range> blocks = softmax_of(run);
  if (blocks.size() <= kBlocks) return {0, run.length};
  const std::size_t first = (blocks.size() - kBlocks) / 2;
  return {blocks[first].begin, blocks[first + kBlocks].begin - blocks[first].begin};
}

std::string timeline_svg(const std::vector<Timeline>& runs) {
  return Picture(runs).draw(runs, false);
}

std::string schedule_to_scale_svg(const std::vector<Timeline>& runs) {
  return Picture(runs).draw(runs, true);
}

}  // namespace deuce::trace
