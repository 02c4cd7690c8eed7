// SPDX-License-Identifier: Apache-2.0
// Arithmetic of one sub-partition of an SM. Warps that have some at the same time issue in turns,
// so each has an equal share of the pipe until one is done. Used by Block::take_work.
#pragma once

#include <algorithm>
#include <vector>

namespace deuce::emulator {

class SharedPipe {
 public:
  /// From `now` on `warp` has `need` cycles of work. When it ends if nobody comes meanwhile.
  double add(int warp, double need, double now) {
    advance(now);
    Share* own = find(warp);
    if (own == nullptr) own = &shares_.emplace_back(Share{warp});
    own->left += need;
    return end_of(warp, now);
  }

  /// When the latest work of `warp` ends, by what is known at `now`, or has ended.
  double end_of(int warp, double now) {
    advance(now);
    const Share* own = find(warp);
    if (own == nullptr) return 0;
    if (own->left <= 0) return own->ended;
    SharedPipe alone = *this;  // as it goes on if nobody comes
    while (alone.find(warp)->left > 0) alone.run_to_next_end(kNever);
    return alone.find(warp)->ended;
  }

 private:
  static constexpr double kNever = 1e300;
  struct Share {
    int warp;
    double left = 0, ended = 0;
  };

  void advance(double now) {
    while (run_to_next_end(now)) {
    }
    at_ = std::max(at_, now);
  }

  /// Until one of the warps is done, but not beyond `limit`. False where none was.
  bool run_to_next_end(double limit) {
    int active = 0;
    double least = kNever;
    for (const Share& share : shares_) {
      if (share.left <= 0) continue;
      ++active;
      least = std::min(least, share.left);
    }
    if (active == 0) return false;
    const double end = at_ + least * active;
    const bool ends = end <= limit;
    const double part = ends ? least : (limit - at_) / active;
    at_ = ends ? end : limit;
    for (Share& share : shares_) {
      if (share.left <= 0) continue;
      share.left = ends && share.left == least ? 0 : share.left - part;
      if (share.left <= 0) share.ended = at_;
    }
    return ends;
  }

  Share* find(int warp) {
    const auto found = std::find_if(shares_.begin(), shares_.end(),
                                    [&](const Share& share) { return share.warp == warp; });
    return found == shares_.end() ? nullptr : &*found;
  }

  double at_ = 0;
  std::vector<Share> shares_;  // one for each warp that ever came
};

}  // namespace deuce::emulator
