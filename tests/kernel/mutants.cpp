// SPDX-License-Identifier: Apache-2.0
// The list of mutants. Arrays that a mutant changes live in static storage, since arguments point
// into write-protected buffers.
#include "kernel/mutants.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/content.h"

namespace deuce::testing {
namespace {

using Config = deuce_decode_config;
using Args = deuce_decode_args;

Subject mutant(std::string name, std::function<void(Config&, Args&)> mutate) {
  return {.name = std::move(name), .mutate = std::move(mutate)};
}
Subject damaged(std::string name, std::function<void(Instance&)> damage) {
  return {.name = std::move(name), .damage = std::move(damage)};
}

/// Lengths changed by `change`, kept within the cache.
void change_lengths(Config& config, Args& args, int32_t change) {
  static std::vector<int32_t> lengths;
  if (args.kv_len == nullptr) return;
  lengths.assign(args.kv_len, args.kv_len + args.batch);
  const int64_t capacity = config.page_size > 0
                               ? int64_t{args.block_table_columns} * config.page_size
                               : args.cache_slots;
  for (int32_t b = 0; b < args.batch; ++b) {
    const int32_t start = args.kv_start == nullptr ? 0 : args.kv_start[b];
    const bool fits = lengths[b] + change <= capacity && lengths[b] + change >= start;
    if (lengths[b] > 0 && fits) lengths[b] += change;
  }
  config.max_kv_len += 1;
  args.kv_len = lengths.data();
}

void ids_in_order(Config&, Args& args) {
  static std::vector<int32_t> table;
  if (args.block_table == nullptr || args.batch == 0) return;
  table.assign(args.block_table, args.block_table + (args.batch - 1) * args.block_table_stride +
                                     args.block_table_columns);
  for (int32_t b = 0; b < args.batch; ++b) {
    int32_t* row = table.data() + b * args.block_table_stride;
    for (int32_t c = 1; c < args.block_table_columns; ++c) {
      const bool both_valid = row[c] >= 0 && row[c] < args.num_pages && row[0] >= 0;
      if (both_valid && row[0] + c < args.num_pages) row[c] = row[0] + c;
    }
  }
  args.block_table = table.data();
}

/// Bits of an element of `out`, by its place in memory.
std::byte* out_element(Instance& instance, int64_t offset) {
  return instance.out_buffer().data() + offset * element_bytes(instance.config.out_dtype);
}

void swap_first_two_heads(Instance& instance) {
  if (instance.source().q_heads() < 2 || instance.source().packed_q) return;
  const int64_t bytes = instance.source().head_dim_v * element_bytes(instance.config.out_dtype);
  if (instance.out_buffer().bytes() == 0) return;
  std::byte* head = out_element(instance, 0);
  std::swap_ranges(head, head + bytes, out_element(instance, instance.args.out_stride[2]));
}

void swap_head_and_token(Instance& instance) {
  const Case& from = instance.source();
  if (from.packed_q || from.batch() == 0 || from.max_q_len() < 2 || from.q_heads() < 2) return;
  if (from.lse == LseWish::none) return;
  std::swap(instance.args.lse[instance.args.lse_stride[1]],
            instance.args.lse[instance.args.lse_stride[2]]);
}

void last_head_unwritten(Instance& instance) {
  const Case& from = instance.source();
  if (from.packed_q || from.batch() == 0) return;
  fill_elements(prefill_bits(from.out_dtype), element_bytes(from.out_dtype),
                out_element(instance, (from.q_heads() - 1) * instance.args.out_stride[2]),
                from.head_dim_v);
}

void writes_between_heads(Instance& instance) {
  if (instance.source().out_order != RowOrder::padded || instance.out_buffer().bytes() == 0) return;
  if (instance.source().q_heads() < 2) return;
  std::memset(out_element(instance, instance.source().head_dim_v), 0, 2);
}

void writes_past_the_end(Instance& instance) {
  std::byte* first = instance.out_buffer().data();
  first[-1] = std::byte{0};
}

void finite_stand_in(Instance& instance) {
  if (instance.args.lse == nullptr || instance.source().packed_q) return;
  for (int64_t b = 0; b < instance.source().batch(); ++b) {
    float& lse = instance.args.lse[b * instance.args.lse_stride[0]];
    if (lse == -std::numeric_limits<float>::infinity()) lse = -1e30F;
  }
}

void empty_rows_average_v(Instance& instance) {
  const Case& from = instance.source();
  if (from.packed_q) return;
  for (int64_t b = 0; b < from.batch(); ++b) {
    if (from.requests[b].kv_len > 0) continue;
    const float one = 1;
    store_elements(from.out_dtype, out_element(instance, b * instance.args.out_stride[0]), &one, 1);
  }
}

}  // namespace

std::vector<Subject> argument_mutants() {
  return {
      mutant("causal lost", [](Config& c, Args&) { c.causal = 0; }),
      mutant("window excludes its left edge",
             [](Config& c, Args&) { c.window_left -= c.window_left > 0 ? 1 : 0; }),
      mutant("window includes one more on the right",
             [](Config& c, Args&) { c.window_right += c.window_right >= 0 ? 1 : 0; }),
      mutant("window lost", [](Config& c, Args&) { c.window_left = c.window_right = -1; }),
      mutant("softcap ignored", [](Config& c, Args&) { c.softcap = 0; }),
      mutant("scale ignored", [](Config& c, Args&) { c.softmax_scale = 0; }),
      mutant("base 2 asked, natural given", [](Config& c, Args&) { c.lse_base = 0; }),
      mutant("sink ignored", [](Config&, Args& a) { a.sink = nullptr; }),
      mutant("score_scale ignored", [](Config&, Args& a) { a.score_scale = 0; }),
      mutant("out_scale ignored", [](Config&, Args& a) { a.out_scale = 0; }),
      mutant("q_descale ignored", [](Config&, Args& a) { a.q_descale = nullptr; }),
      mutant("k_descale ignored", [](Config&, Args& a) { a.k_descale = nullptr; }),
      mutant("v_descale ignored", [](Config&, Args& a) { a.v_descale = nullptr; }),
      mutant("k and v descales exchanged",
             [](Config&, Args& a) {
               std::swap(a.k_descale, a.v_descale);
               std::swap(a.k_descale_stride, a.v_descale_stride);
             }),
      mutant("k_token_scale ignored", [](Config&, Args& a) { a.k_token_scale = nullptr; }),
      mutant("v_token_scale ignored", [](Config&, Args& a) { a.v_token_scale = nullptr; }),
      mutant("kv_start ignored",
             [](Config& c, Args& a) {
               a.kv_start = nullptr;
               c.max_kv_len = std::numeric_limits<int16_t>::max();
             }),
      mutant("last key dropped", [](Config& c, Args& a) { change_lengths(c, a, -1); }),
      mutant("one unused key attended", [](Config& c, Args& a) { change_lengths(c, a, 1); }),
      mutant("page ids taken in order", ids_in_order),
      mutant("cache rows taken in order", [](Config&, Args& a) { a.cache_row = nullptr; }),
      mutant("q head stride taken as dense",
             [](Config& c, Args& a) { a.q_stride[2] = c.head_dim_qk; }),
      mutant("k and v strides exchanged",
             [](Config&, Args& a) { std::swap(a.k_stride, a.v_stride); }),
      mutant("v read in place of k",
             [](Config& c, Args& a) {
               if (c.head_dim_qk == c.head_dim_v) a.k = a.v;
             }),
  };
}

std::vector<Subject> result_mutants() {
  return {
      damaged("two heads exchanged", swap_first_two_heads),
      damaged("LSE of head and token exchanged", swap_head_and_token),
      damaged("last head not written", last_head_unwritten),
      damaged("writes between heads", writes_between_heads),
      damaged("writes before the tensor", writes_past_the_end),
      damaged("finite stand-in for minus infinity", finite_stand_in),
      damaged("empty row not zero", empty_rows_average_v),
  };
}

}  // namespace deuce::testing
