// SPDX-License-Identifier: Apache-2.0
// Fetching the next tile while this one is computed. Included by kernels-inl.h, once per
// instruction set. Scores fetch the next K and values the next V, each block its share, so that
// arithmetic and memory advance at the same rate; what a block fetches never depends on data.

/// Compilers would move all fetches of a block to its beginning: they cannot see through this line,
/// which emits no instruction.
HWY_INLINE void hold(const std::byte*& pointer) { asm volatile("" : "+r"(pointer)); }

/// What to fetch while a block is computed, a line or two at a time: a burst of fetches finds no
/// free miss buffers and waits or is dropped.
struct Ahead {
  const std::byte* at;
  ptrdiff_t step;  // bytes, at most a line

  template <int kCount>
  HWY_INLINE void fetch_next() {
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
      fetch(at);
      at += step;
    }
    hold(at);
  }
};

/// Rows of the next tile that lie ready to be fetched.
struct NextRows {
  const std::byte* const* rows;
  int count;
  int bytes;  // of a row
};

/// Deals out the lines of the next tile's K or V in equal portions for the blocks of this one.
class Fetcher {
 public:
  /// `blocks` portions for blocks of `fetches` each; `resting` is what they fetch once nothing is
  /// left.
  Fetcher(const NextRows& next, int blocks, int fetches, const void* resting)
      : next_(next), line_(static_cast<const std::byte*>(resting)), resting_(line_) {
    portion_ = (next.count * next.bytes + blocks - 1) / blocks;
    step_ = fetches == 0 ? 0 : std::min((portion_ + fetches - 1) / fetches, kCacheLine);
    too_many_ = portion_ > fetches * step_;
    enter_run();
  }

  HWY_INLINE Ahead next() {
    if (left_ < portion_ || too_many_) {
      fetch_now();
      return {resting_, 0};
    }
    const Ahead ahead{line_, step_};
    line_ += portion_;
    left_ -= portion_;
    return ahead;
  }

 private:
  void fetch_now() {
    for (ptrdiff_t bytes = portion_; bytes > 0; bytes -= kCacheLine) {
      if (left_ <= 0) enter_run();
      if (left_ <= 0) return;
      fetch(line_);
      line_ += kCacheLine;
      left_ -= kCacheLine;
    }
  }

  /// From here on as many rows as lie one behind the other.
  void enter_run() {
    left_ = 0;
    if (row_ >= next_.count) return;
    line_ = next_.rows[row_];
    do {
      left_ += next_.bytes;
      ++row_;
    } while (row_ < next_.count && next_.rows[row_] == line_ + left_);
  }

  NextRows next_;
  int row_ = 0, portion_ = 0, step_ = 0;
  bool too_many_ = false;
  const std::byte *line_, *resting_;
  ptrdiff_t left_ = 0;
};
