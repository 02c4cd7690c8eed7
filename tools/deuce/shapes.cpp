// SPDX-License-Identifier: Apache-2.0
// A base config that every backend is likely to take, and one question per variation of it.
#include "shapes.h"

#include <fmt/format.h>

#include <array>

#include "plan/names.h"

namespace deuce::cli {
namespace {

constexpr int kLargestHeadDim = 1024;
constexpr std::array kTypes{DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2};

deuce_decode_config base_config(Backend backend, Backend emulated, int head_dim) {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.backend = static_cast<int32_t>(backend);
  config.emulated_backend = static_cast<int32_t>(emulated);
  config.num_q_heads = 8;
  config.num_kv_heads = 1;
  config.head_dim_qk = config.head_dim_v = head_dim;
  config.q_dtype = config.kv_dtype = DEUCE_BF16;
  config.page_size = 16;
  config.max_batch = 4;
  config.max_q_len = 2;
  config.max_kv_len = 4096;
  return config;
}

bool served(const deuce_decode_config& config) { return deuce_decode_check(&config) == DEUCE_OK; }

struct Feature {
  const char* name;
  void (*ask)(deuce_decode_config& config);
};
constexpr std::array kFeatures{
    Feature{"causal", [](deuce_decode_config& c) { c.causal = 1; }},
    Feature{"window", [](deuce_decode_config& c) { c.window_left = 127; }},
    Feature{"softcap", [](deuce_decode_config& c) { c.softcap = 30; }},
    Feature{"LSE base 2", [](deuce_decode_config& c) { c.lse_base = 2; }},
    Feature{"num_splits", [](deuce_decode_config& c) { c.num_splits = 4; }},
    Feature{"split_kv_len", [](deuce_decode_config& c) { c.split_kv_len = 512; }},
    Feature{"sm_margin", [](deuce_decode_config& c) { c.sm_margin = 1; }},
    Feature{"rows > 128", [](deuce_decode_config& c) { c.max_q_len = 64; }},
    Feature{"odd group", [](deuce_decode_config& c) { c.num_q_heads = 7; }},
    Feature{"head dims that differ",
            [](deuce_decode_config& c) { c.head_dim_v = c.head_dim_v == 128 ? 64 : 128; }},
};

}  // namespace

SupportedShapes supported_shapes(Backend backend, Backend emulated) {
  SupportedShapes shapes;
  for (int head_dim = 8; head_dim <= kLargestHeadDim; head_dim += 8) {
    if (served(base_config(backend, emulated, head_dim))) shapes.head_dims.push_back(head_dim);
    if (head_dim == 128 && shapes.head_dims.empty()) shapes.refusal = deuce_last_error();
  }
  if (shapes.head_dims.empty()) return shapes;
  shapes.refusal.clear();
  const bool usual = served(base_config(backend, emulated, 128));
  const deuce_decode_config base =
      base_config(backend, emulated, usual ? 128 : shapes.head_dims.front());
  const auto ask = [&base](const auto& change) {
    deuce_decode_config config = base;
    change(config);
    return served(config);
  };
  for (const DType q : kTypes) {
    for (const DType kv : kTypes) {
      const bool yes = ask([&](deuce_decode_config& c) {
        c.q_dtype = static_cast<int32_t>(q);
        c.kv_dtype = static_cast<int32_t>(kv);
      });
      if (yes) shapes.types.push_back(fmt::format("{} x {}", name_of(q), name_of(kv)));
    }
  }
  // What is written may depend on what is read: asked for each type of q.
  shapes.out_as_q = true;
  for (const DType out : kTypes) {
    bool written = false;
    for (const DType q : kTypes) {
      const bool yes = ask([&](deuce_decode_config& c) {
        c.q_dtype = c.kv_dtype = static_cast<int32_t>(q);
        c.out_dtype = static_cast<int32_t>(out);
      });
      written = written || yes;
      if (yes && q != out) shapes.out_as_q = false;
    }
    if (written) shapes.out_types.emplace_back(name_of(out));
  }
  for (const DType sink : {DType::f32, DType::f16, DType::bf16}) {
    if (ask([sink](deuce_decode_config& c) { c.sink_dtype = static_cast<int32_t>(sink); })) {
      shapes.sink_types.emplace_back(name_of(sink));
    }
  }
  shapes.contiguous = ask([](deuce_decode_config& c) { c.page_size = 0; });
  for (int page = 256; page >= 1; --page) {
    if (ask([page](deuce_decode_config& c) { c.page_size = page; })) shapes.smallest_page = page;
  }
  for (int slots = 1; slots <= 3; ++slots) {
    // A kernel of many rows may have more of them than one of few.
    for (const int tokens : {2, 16}) {
      const bool yes = ask([=](deuce_decode_config& c) {
        c.score_slots = slots;
        c.max_q_len = tokens;
      });
      if (yes) shapes.most_score_slots = slots;
    }
  }
  for (const int replicas : {1, 2, 4}) {
    if (ask([replicas](deuce_decode_config& c) { c.row_replicas = replicas; }))
      shapes.most_row_replicas = replicas;
  }
  for (const Feature& feature : kFeatures) {
    (ask(feature.ask) ? shapes.features : shapes.refused_features).emplace_back(feature.name);
  }
  return shapes;
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    // The longest run of equal steps from here; two numbers alone are no run.
    std::size_t last = first;
    const int step = first + 1 < numbers.size() ? numbers[first + 1] - numbers[first] : 0;
    while (last + 1 < numbers.size() && numbers[last + 1] - numbers[last] == step) ++last;
    if (last < first + 2) last = first;
    text += text.empty() ? "" : ", ";
    text += last == first ? fmt::format("{}", numbers[first])
                          : fmt::format("{} .. {} step {}", numbers[first], numbers[last], step);
    first = last + 1;
  }
  return text;
}

}  // namespace deuce::cli
