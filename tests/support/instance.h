// SPDX-License-Identifier: Apache-2.0
// The buffers, config and arguments of a Case: each tensor at exactly its size between guards,
// everything that no row sees filled with poison, results prefilled with a pattern that no
// computation produces. After a run it tells what was written where.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/case.h"
#include "support/guarded_buffer.h"

namespace deuce::testing {

/// What unused bytes hold. `bytes` repeats one byte value, `random` differs from byte to byte.
struct Poison {
  enum class Fill { zeros, nan, negative_nan, infinity, negative_infinity, largest, random, bytes };
  Fill fill = Fill::zeros;
  uint8_t byte = 0;
  bool in_k = true, in_v = true;  // false: zeros there
};

/// A tensor of rows (q, out, lse) or of the cache: where its elements lie.
struct TensorView {
  int64_t stride[3] = {0, 0, 0};
  int64_t elements = 0;  // up to and including the last one
};

class Instance {
 public:
  explicit Instance(const Case& from, const Poison& poison = {});

  const Case& source() const { return case_; }
  deuce_decode_config config{};
  deuce_decode_args args{};

  /// Lets a test overwrite inputs.
  void thaw();
  /// A workspace of exactly `bytes`, filled with `fill`.
  std::byte* make_workspace(std::size_t bytes, uint8_t fill = 0xFF);

  /// First violation of the frame after a successful run: an element left unwritten, a write
  /// between elements, a touched guard band. Empty when there is none.
  std::string frame_violation() const;
  /// Result bits by (token, head, column), whatever the strides.
  std::vector<uint32_t> output_bits() const;
  std::vector<uint32_t> lse_bits() const;
  /// Whether out and lse still hold their prefill everywhere.
  bool results_untouched() const;

  /// Every buffer a pointer of `args` may point into; the workspace is the last one.
  const std::vector<GuardedBuffer>& buffers() const { return buffers_; }
  GuardedBuffer& out_buffer() { return buffers_[out_]; }

 private:
  GuardedBuffer& add(std::size_t bytes, std::size_t alignment = 16);
  void fill_config();
  void build_rows();
  void build_lengths();
  void build_pages();
  void build_indptr_table();
  void build_block_table();
  void build_cache(const Poison& poison);
  void write_keys(int64_t request);
  void write_key(int64_t request, int64_t position);
  void build_scales(const Poison& poison);
  void build_sink();
  int32_t page_or_junk(int64_t request, int64_t column);
  template <class Body>
  void for_each_row(Body body) const {  // body(request, row, head)
    for (int64_t request = 0; request < case_.batch(); ++request) {
      for (int64_t row = 0; row < case_.requests[request].q_len; ++row) {
        for (int64_t head = 0; head < case_.q_heads(); ++head) body(request, row, head);
      }
    }
  }
  std::string check_written(const char* name, const GuardedBuffer& buffer,
                            const int64_t (&stride)[3], int64_t columns, int32_t dtype) const;
  std::vector<uint32_t> bits(const GuardedBuffer& buffer, const int64_t (&stride)[3],
                             int64_t columns, int32_t dtype) const;
  int64_t row_offset(const int64_t (&stride)[3], int64_t request, int64_t row, int64_t head) const;

  Case case_;
  std::vector<GuardedBuffer> buffers_;
  std::size_t out_ = 0, lse_ = 0;
  std::vector<int32_t> cu_q_len_;
  std::vector<std::vector<int32_t>>
      pages_;  // [request][column], for contiguous caches: [request][0]
  int32_t page_count_ = 0;
  int64_t slots_ = 0;  // of a page or cache row
  std::byte *k_ = nullptr, *v_ = nullptr;
  float *k_scale_ = nullptr, *v_scale_ = nullptr;
};

/// Keys that some row of the request sees, found row by row: first .. last - 1.
struct VisibleKeys {
  int64_t first = 0, last = 0;
};
VisibleKeys visible_to_request(const Case& from, int64_t request);

}  // namespace deuce::testing
