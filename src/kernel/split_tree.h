// SPDX-License-Identifier: Apache-2.0
// The fixed order in which splits are merged under split_kv_len: a binary tree over
// the absolute split number. A node's value depends on its position alone, so the result does not
// depend on how many workers there are or on what else is in the batch.
//
// A worker that walks splits run_first, run_first + 1, ... keeps finished nodes on a stack; its
// depth stays below 2 * levels. What is left at the end of its run are the nodes it hands over, and
// whoever merges the item pushes the nodes of all workers, in order, through the same rule.
#pragma once

#include <cstdint>

namespace deuce {

/// Splits first .. first + 2^level - 1; first is a multiple of 2^level. Splits past the item's end,
/// or before its first visible one, count as absent: a node with one absent child is the other one.
struct TreeNode {
  int32_t first = 0, level = 0;
  constexpr int32_t last() const { return first + (int32_t{1} << level); }
};

/// Levels of the tree over `splits` splits: the smallest n with 2^n >= splits.
constexpr int32_t tree_levels(int64_t splits) {
  int32_t levels = 0;
  while ((int64_t{1} << levels) < splits) ++levels;
  return levels;
}

/// The largest node that begins at `first` and ends at or before `last` (first < last).
constexpr TreeNode largest_node(int32_t first, int32_t last) {
  int32_t level = 0;
  while ((first >> level) % 2 == 0 && (int64_t{2} << level) <= last - first) ++level;
  return {first, level};
}

/// How many nodes, from the top of the stack down, a finished node merges with. `run_first` is the
/// first split of the run (0 for a run that starts its item), `item_first` the item's first one.
constexpr int32_t merges_with(TreeNode node, int32_t run_first, int32_t item_first) {
  int32_t merges = 0;
  while ((node.first >> node.level) % 2 == 1) {
    const int32_t sibling = node.first - (int32_t{1} << node.level);
    if (sibling < run_first) break;         // another worker holds part of it
    if (node.first > item_first) ++merges;  // else the sibling is absent
    node = {sibling, node.level + 1};
  }
  return merges;
}

/// Nodes that a finished run leaves on the stack, from the bottom up.
class RunNodes {
 public:
  constexpr RunNodes(int32_t run_first, int32_t run_last, int32_t item_first)
      : next_(run_first == item_first ? 0 : run_first), last_(run_last), item_first_(item_first) {}

  constexpr bool next(TreeNode& node) {
    while (next_ < last_) {
      node = largest_node(next_, last_);
      next_ = node.last();
      if (next_ > item_first_) return true;  // else wholly before the item's first split
    }
    return false;
  }

 private:
  int32_t next_, last_, item_first_;
};

}  // namespace deuce
