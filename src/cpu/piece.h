// SPDX-License-Identifier: Apache-2.0
// Attention of one piece: queries into place, then the keys of the piece tile by tile, then the
// state of each row out of the kernels' order. Used by worker.cpp; one object per worker and piece.
// It must hold that no key outside those that the item's rows see is ever read.
#pragma once

#include "cpu/kernels.h"
#include "cpu/layout.h"
#include "kernel/work.h"
#include "plan/cache_view.h"

namespace deuce::cpu {

/// Where a row of an item lies among the packed rows of its request.
struct RowPlace {
  int32_t local;  // row of the item
  int64_t token;  // row of the request
  int64_t head;   // query head
};

/// Rows of an item by (KV head of the bundle, row of that head).
class ItemRows {
 public:
  ItemRows(const WorkShape& shape, const Item& item, const Bundle& bundle, int group)
      : first_(int64_t{item.row_tile} * shape.row_tile),
        width_(shape.group),
        first_head_(int64_t{item.kv_head} * shape.group),
        group_(group),
        heads_(bundle.heads),
        per_head_(item.rows / bundle.heads) {}

  int per_head() const { return per_head_; }
  RowPlace place(int head, int row) const {
    const int32_t local = heads_ == 1 ? row : row / group_ * width_ + head * group_ + row % group_;
    return place(local);
  }
  RowPlace place(int32_t local) const {
    const int64_t packed = first_ + local;
    return {local, packed / width_, first_head_ + packed % width_};
  }

 private:
  int64_t first_;
  int32_t width_;  // packed rows of a token
  int64_t first_head_;
  int group_, heads_, per_head_;
};

/// The smallest, but for 0, and the largest of some numbers without their signs; NaN is large.
struct Magnitudes {
  float smallest, largest;
};

class PieceAttention {
 public:
  PieceAttention(const Problem& problem, const Kernels& kernels, const Call& call,
                 const WorkShape& shape, const Bundle& bundle, const Scratch& scratch)
      : problem_(problem),
        kernels_(kernels),
        call_(call),
        work_(shape),
        bundle_(bundle),
        scratch_(scratch),
        view_(problem, call) {}

  /// Leaves the state of the piece in scratch.partial.
  void attend(const Piece& piece, const RequestSizes& sizes);

 private:
  ItemShape shape_of(const Piece& piece, const ItemRows& rows) const;
  float factor(const Piece& piece, int head) const;
  const std::byte* query(const Piece& piece, const RowPlace& at) const;
  Magnitudes magnitudes(const Piece& piece, const ItemRows& rows) const;
  KeySpan keys_of(const Piece& piece, const RequestSizes& sizes, const ItemRows& rows) const;
  void place_queries(const Piece& piece, const ItemRows& rows, const Tile& first);
  void walk_keys(const Piece& piece, const RequestSizes& sizes, const ItemRows& rows,
                 const KeySpan& keys, const Tile& first);
  void place_query(int head, int row, const std::byte* query);
  void locate(const Item& item, const KeySpan& span, int most, int buffer, Tile& tile);
  void find_seen(const RequestSizes& sizes, const ItemRows& rows, int64_t first, Tile& tile);

  const Problem& problem_;
  const Kernels& kernels_;
  const Call& call_;
  const WorkShape& work_;
  const Bundle& bundle_;
  const Scratch& scratch_;
  CacheView view_;
  ItemShape item_shape_;
};

}  // namespace deuce::cpu
