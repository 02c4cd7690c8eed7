// SPDX-License-Identifier: Apache-2.0
// The draw, its simplifications and its text. The sets follow the sweep of the test plan; lengths
// meet page and tile borders far more often than chance would.
#include "support/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace deuce::testing {
namespace {

template <class T>
T one_of(Rng& rng, std::initializer_list<T> values) {
  return values.begin()[uniform(rng, 0, static_cast<int64_t>(values.size()) - 1)];
}
bool chance(Rng& rng, int one_in) { return uniform(rng, 1, one_in) == 1; }

int64_t draw_length(Rng& rng, int64_t page) {
  const int64_t step = page > 0 && page < 2000 ? page : 64;
  switch (uniform(rng, 0, 9)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return step + uniform(rng, -1, 1);
    case 3: return 2 * step + uniform(rng, -1, 1);
    case 4: return one_of<int64_t>(rng, {64, 128, 256, 384}) + uniform(rng, -1, 1);
    case 5: return uniform(rng, 1, 40);
    case 6: return static_cast<int64_t>(std::exp2(static_cast<double>(uniform(rng, 0, 130)) / 10));
    default: return uniform(rng, 1, 1500);
  }
}

int32_t draw_window(Rng& rng, const Case& from) {
  if (chance(rng, 2)) return -1;
  const auto page = static_cast<int64_t>(from.page_size > 0 ? from.page_size : 64);
  const int64_t length = from.requests[0].kv_len;
  const int64_t window =
      one_of<int64_t>(rng, {0, 1, page - 1, page, page + 1, length, length + 1, 100, 1000000000});
  return static_cast<int32_t>(window);
}

void draw_types(Rng& rng, Case& into) {
  into.kv_dtype =
      one_of<int32_t>(rng, {DEUCE_BF16, DEUCE_BF16, DEUCE_F16, DEUCE_F32, DEUCE_E4M3, DEUCE_E5M2});
  into.q_dtype = into.kv_dtype;
  if (into.fp8_cache()) {
    into.q_dtype = one_of<int32_t>(rng, {DEUCE_BF16, DEUCE_F16, DEUCE_F32, into.kv_dtype});
  }
  const bool other_out = chance(rng, 4) || into.fp8_q();
  into.out_dtype =
      other_out ? one_of<int32_t>(rng, {DEUCE_BF16, DEUCE_F16, DEUCE_F32}) : into.q_dtype;
  into.head_dim_qk = one_of<int32_t>(rng, {64, 64, 128, 128, 96, 192, 256, 16, 80});
  into.head_dim_v = into.head_dim_qk;
  if (into.head_dim_qk == 192 && chance(rng, 2)) into.head_dim_v = 128;
}

void draw_layout(Rng& rng, Case& into) {
  if (!chance(rng, 4)) {
    into.page_size = one_of<int32_t>(rng, {1, 4, 8, 16, 16, 24, 48, 64, 64, 96, 128, 192, 256});
    into.indptr = chance(rng, 3);
  }
  into.give_kv_len = !chance(rng, 4);
  into.shuffled = !chance(rng, 8);
  into.spare_columns = static_cast<int32_t>(uniform(rng, 0, 3));
  into.table_padding = static_cast<int32_t>(uniform(rng, 0, 3));
  into.kv_order = one_of(rng, {KvOrder::nhd, KvOrder::hnd, KvOrder::padded, KvOrder::interleaved});
  if (chance(rng, 6)) into.padding = 1;
  const auto draw_order = [&] {
    return one_of(rng, {RowOrder::dense, RowOrder::padded, RowOrder::head_major, RowOrder::sliced});
  };
  into.q_order = draw_order();
  into.out_order = draw_order();
  into.lse_order = draw_order();
  into.packed_q = chance(rng, 2);
}

void draw_requests(Rng& rng, Case& into, double effort) {
  const int64_t batch = chance(rng, 20) ? 0 : uniform(rng, 1, chance(rng, 4) ? 17 : 5);
  const int64_t longest_q = chance(rng, 2) ? 1 : uniform(rng, 2, 9);
  for (int64_t b = 0; b < batch; ++b) {
    RequestCase request;
    request.kv_len = draw_length(rng, into.page_size);
    if (chance(rng, 5)) request.kv_start = uniform(rng, 0, request.kv_len);
    request.q_len = static_cast<int32_t>(into.packed_q ? uniform(rng, 0, longest_q) : longest_q);
    request.name = rng();
    into.requests.push_back(request);
  }
  if (!into.give_kv_len && !into.indptr) {  // one length for all
    for (RequestCase& request : into.requests) {
      request.kv_len = into.requests[0].kv_len;
      request.kv_start = std::min(request.kv_start, request.kv_len);
    }
  }
  const auto cost = [&] {
    double sum = 0;
    for (const RequestCase& request : into.requests) {
      sum += static_cast<double>(request.kv_len - request.kv_start) * request.q_len;
    }
    return sum * into.q_heads() * (into.head_dim_qk + into.head_dim_v);
  };
  while (cost() > effort) {
    for (RequestCase& request : into.requests) {
      request.kv_len = request.kv_len * 2 / 3;
      request.kv_start = std::min(request.kv_start, request.kv_len);
    }
  }
}

void draw_features(Rng& rng, Case& into) {
  into.causal = chance(rng, 2);
  if (chance(rng, 3) && !into.requests.empty()) {
    into.window_left = draw_window(rng, into);
    into.window_right = draw_window(rng, into);
  }
  into.softmax_scale = one_of<float>(rng, {0, 0, 0.7F, -1.3F});
  into.score_scale = one_of<float>(rng, {0, 0, 0.5F});
  into.out_scale = one_of<float>(rng, {0, 0, -2.5F});
  into.softcap = one_of<float>(rng, {0, 0, 0, 30, 50});
  into.sink = chance(rng, 3);
  into.sink_dtype = one_of<int32_t>(rng, {DEUCE_F32, DEUCE_F16, DEUCE_BF16});
  into.descales = (into.fp8_cache() || into.fp8_q()) && !chance(rng, 3);
  into.token_scales = into.fp8_cache() && chance(rng, 3);
  into.lse = one_of(rng, {LseWish::none, LseWish::natural, LseWish::natural, LseWish::base2});
}

void draw_cutting(Rng& rng, Case& into) {
  switch (uniform(rng, 0, 4)) {
    case 0: into.num_splits = static_cast<int32_t>(uniform(rng, 1, 32)); break;
    case 1: into.split_kv_len = one_of<int32_t>(rng, {128, 384, 8192}); break;
    default: break;
  }
  into.score_slots = one_of<int32_t>(rng, {0, 0, 1, 2, 3});
  into.workers = one_of<int32_t>(rng, {0, 0, 1, 2, 3, 46, 132, 152});
}

}  // namespace

int64_t Case::max_q_len() const {
  int64_t longest = 1;
  for (const RequestCase& request : requests) longest = std::max<int64_t>(longest, request.q_len);
  return longest;
}

int64_t Case::max_live() const {
  int64_t longest = 1;
  for (const RequestCase& request : requests) {
    longest = std::max(longest, request.kv_len - request.kv_start);
  }
  return longest;
}

Case draw_case(uint64_t seed, double effort) {
  Rng rng(seed * 0x9E3779B97F4A7C15U + 1);
  Case drawn;
  drawn.seed = seed;
  drawn.kv_heads = static_cast<int32_t>(uniform(rng, 1, 4));
  drawn.group = one_of<int32_t>(rng, {1, 2, 3, 4, 5, 7, 8, 12, 16, 33, 71, 128, 130});
  if (drawn.group > 16) drawn.kv_heads = 1;
  draw_types(rng, drawn);
  draw_layout(rng, drawn);
  draw_requests(rng, drawn, effort);
  draw_features(rng, drawn);
  draw_cutting(rng, drawn);
  return drawn;
}

std::vector<Case> simpler(const Case& from) {
  std::vector<Case> cases;
  const auto with = [&](auto change) {
    Case copy = from;
    change(copy);
    if (describe(copy) != describe(from)) cases.push_back(std::move(copy));
  };
  for (std::size_t i = 0; i < from.requests.size() && from.requests.size() > 1; ++i) {
    with([&](Case& c) { c.requests.erase(c.requests.begin() + static_cast<std::ptrdiff_t>(i)); });
  }
  for (std::size_t i = 0; i < from.requests.size(); ++i) {
    const auto shorten = [&](int64_t kv_len) {
      with([&](Case& c) {
        const bool all = !c.give_kv_len && !c.indptr;
        for (std::size_t j = all ? 0 : i; j < (all ? c.requests.size() : i + 1); ++j) {
          c.requests[j].kv_len = kv_len;
          c.requests[j].kv_start = std::min(c.requests[j].kv_start, kv_len);
        }
      });
    };
    if (from.requests[i].kv_len > 1) shorten(from.requests[i].kv_len / 2);
    if (from.requests[i].kv_len > 0) shorten(from.requests[i].kv_len - 1);
    with([&](Case& c) { c.requests[i].kv_start = 0; });
    with([&](Case& c) {
      for (RequestCase& request : c.requests) request.q_len = std::min(request.q_len, 1);
    });
  }
  with([](Case& c) { c.kv_heads = 1; });
  with([](Case& c) { c.group = 1; });
  with([](Case& c) { c.head_dim_qk = c.head_dim_v = 64; });
  with([](Case& c) {
    if (!c.descales && !c.token_scales) c.q_dtype = c.kv_dtype = c.out_dtype = DEUCE_BF16;
  });
  with([](Case& c) { c.descales = c.token_scales = false; });
  with([](Case& c) {
    c.kv_order = KvOrder::nhd;
    c.padding = 16;
    c.q_order = c.out_order = c.lse_order = RowOrder::dense;
  });
  with([](Case& c) { c.spare_columns = c.table_padding = 0; });
  with([](Case& c) { c.page_size = 0, c.indptr = false, c.give_kv_len = true; });
  with([](Case& c) { c.window_left = c.window_right = -1; });
  with([](Case& c) { c.causal = false; });
  with([](Case& c) { c.softmax_scale = c.softcap = c.score_scale = c.out_scale = 0; });
  with([](Case& c) { c.sink = false; });
  with([](Case& c) { c.num_splits = c.split_kv_len = c.score_slots = 0; });
  with([](Case& c) { c.workers = 1; });
  with([](Case& c) { c.lse = LseWish::none; });
  return cases;
}

std::string describe(const Case& c) {
  std::string requests;
  for (const RequestCase& request : c.requests) {
    requests += fmt::format("{{{}, {}, {}, {}u}}, ", request.kv_len, request.kv_start,
                            request.q_len, request.name);
  }
  return fmt::format(
      "Case{{.seed = {}, .requests = {{{}}}, .kv_heads = {}, .group = {}, .head_dim_qk = {}, "
      ".head_dim_v = {}, .q_dtype = {}, .kv_dtype = {}, .out_dtype = {}, .sink_dtype = {}, "
      ".page_size = {}, .indptr = {}, .give_kv_len = {}, .shuffled = {}, .spare_columns = {}, "
      ".table_padding = {}, .kv_order = {}, .padding = {}, .q_order = {}, .out_order = {}, "
      ".lse_order = {}, "
      ".packed_q = {}, .causal = {}, .window_left = {}, .window_right = {}, .softmax_scale = {}, "
      ".softcap = {}, .score_scale = {}, .out_scale = {}, .sink = {}, .descales = {}, "
      ".token_scales = {}, .lse = {}, .num_splits = {}, .split_kv_len = {}, .score_slots = {}, "
      ".row_replicas = {}, .sm_margin = {}, .workers = {}}}",
      c.seed, requests, c.kv_heads, c.group, c.head_dim_qk, c.head_dim_v, c.q_dtype, c.kv_dtype,
      c.out_dtype, c.sink_dtype, c.page_size, c.indptr, c.give_kv_len, c.shuffled, c.spare_columns,
      c.table_padding, static_cast<int>(c.kv_order), c.padding, static_cast<int>(c.q_order),
      static_cast<int>(c.out_order), static_cast<int>(c.lse_order), c.packed_q, c.causal,
      c.window_left, c.window_right, c.softmax_scale, c.softcap, c.score_scale, c.out_scale, c.sink,
      c.descales, c.token_scales, static_cast<int>(c.lse), c.num_splits, c.split_kv_len,
      c.score_slots, c.row_replicas, c.sm_margin, c.workers);
}

}  // namespace deuce::testing
