// SPDX-License-Identifier: Apache-2.0
// Options of the axes, and their product.
#include "bench_axes.h"

#include <algorithm>

#include "options.h"
#include "presets.h"

namespace deuce::cli {
namespace {

constexpr int64_t kMostRequests = 1 << 16, kMostKeys = 1 << 26, kMostRows = 1024;
constexpr int64_t kMostSlots = 1 << 20, kMostDim = 4096;

const Preset* find_preset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [name](const Preset& preset) { return preset.name == name; });
  return found == kPresets.end() ? nullptr : &*found;
}

std::vector<BenchShape> head_shapes(const BenchAxes& axes) {
  std::vector<BenchShape> shapes;
  for (const Heads heads : axes.heads) {
    for (const int64_t dim : axes.head_dims.empty() ? std::vector<int64_t>{128} : axes.head_dims) {
      BenchShape shape;
      shape.preset = fmt::format("{}:{} x {}", heads.q, heads.kv, dim);
      shape.q_heads = heads.q;
      shape.kv_heads = heads.kv;
      shape.head_dim = static_cast<int>(dim);
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

/// The model side of the points: presets, or heads times head dims.
Result<std::vector<BenchShape>> model_shapes(const BenchAxes& axes) {
  if (!axes.heads.empty()) {
    if (!axes.presets.empty()) return invalid("preset", "--preset and --heads exclude each other");
    return head_shapes(axes);
  }
  if (!axes.head_dims.empty()) return invalid("head-dim", "--head-dim goes with --heads");
  std::vector<std::string> names = axes.presets;
  if (names.empty()) names = {"llama3-8b"};
  if (names == std::vector<std::string>{"all"}) {
    names.clear();
    for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  }
  std::vector<BenchShape> shapes;
  for (const std::string& name : names) {
    const Preset* preset = find_preset(name);
    if (preset == nullptr) {
      return invalid("preset", "--preset: {} is not a preset (deuce bench --list shows them)",
                     io::quoted_name(name));
    }
    BenchShape shape;
    shape.preset = name;
    shape.q_heads = preset->q_heads;
    shape.kv_heads = preset->kv_heads;
    shape.head_dim = preset->head_dim;
    shape.window_left = preset->window_left;
    shape.sinks = preset->sinks;
    shape.softcap = preset->softcap;
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

std::vector<int64_t> or_default(const std::vector<int64_t>& values, int64_t otherwise) {
  return values.empty() ? std::vector<int64_t>{otherwise} : values;
}

/// The request side: cases of a length file, or batch times length.
Result<std::vector<LengthCase>> length_cases(const BenchAxes& axes) {
  if (axes.cases.empty() && axes.trace.empty()) {
    if (axes.divide != 1) return invalid("divide", "--divide goes with --trace or --case");
    std::vector<LengthCase> result;
    for (const int64_t batch : or_default(axes.batches, 8)) {
      for (const int64_t keys : or_default(axes.kv_lens, 8192)) {
        result.push_back({"", std::vector<int32_t>(static_cast<std::size_t>(batch),
                                                   static_cast<int32_t>(keys))});
      }
    }
    return result;
  }
  if (!axes.kv_lens.empty())
    return invalid("kv-len", "--kv-len and --trace, --case exclude each other");
  return read_trace(axes.trace_file(), axes.cases, axes.batches, axes.divide);
}

void add_length_options(CLI::App& command, BenchAxes& axes, const char* group) {
  const auto axis = [&](const char* name, const char* help, int64_t lowest, int64_t highest,
                        std::vector<int64_t>& target) {
    text_option(command, name, "N,..", help, [&target, lowest, highest](const std::string& text) {
      Result<std::vector<int64_t>> values = parse_axis(text, lowest, highest);
      if (values.ok()) target = std::move(values.value());
      return values.status();
    })->group(group);
  };
  axis("--batch", "requests (default 8)", 1, kMostRequests, axes.batches);
  axis("--kv-len", "keys of every request (default 8192)", 1, kMostKeys, axes.kv_lens);
  axis("--q-len", "new tokens of each request (default 1)", 1, kMostRows, axes.q_lens);
  axis("--head-dim", "with --heads (default 128)", 1, kMostDim, axes.head_dims);
  axis("--page", "slots of a page, ids shuffled (default 16); 0 = contiguous", 0, kMostSlots,
       axes.pages);
  command
      .add_option("--trace", axes.trace,
                  "real lengths: decode batches (data/decode_batches.json) or\n"
                  "requests (Mooncake, Azure) to form --batch of; docs/cli.md")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--case", axes.cases,
                  "only these cases of the trace (default the repository's file)")
      ->type_name("NAME,..")
      ->delimiter(',')
      ->group(group);
  integer_option(command, "--divide", axes.divide, 1, "divide the lengths of a case by N")
      ->group(group);
}

}  // namespace

Result<std::vector<BenchShape>> points_of(const BenchAxes& axes) {
  const auto models = model_shapes(axes);
  if (!models.ok()) return models.status();
  const auto lengths = length_cases(axes);
  if (!lengths.ok()) return lengths.status();
  const std::vector<DType> types =
      axes.dtypes.empty() ? std::vector<DType>{DType::bf16} : axes.dtypes;
  std::vector<BenchShape> points;
  for (BenchShape shape : models.value()) {
    shape.layout = axes.layout;
    for (const DType type : types) {
      for (const int64_t page : or_default(axes.pages, 16)) {
        for (const int64_t q_len : or_default(axes.q_lens, 1)) {
          for (const LengthCase& one : lengths.value()) {
            shape.dtype = type;
            shape.page_size = static_cast<int>(page);
            shape.q_len = static_cast<int>(q_len);
            shape.lengths = one.name;
            shape.kv_lens = one.kv_lens;
            points.push_back(shape);
          }
        }
      }
    }
  }
  return points;
}

void add_axis_options(CLI::App& command, BenchAxes& axes) {
  constexpr const char* kGroup =
      "What is measured (the product of all axes; 1,8 1k:128k:x2 0:64:+16 1..8)";
  command
      .add_option("--preset", axes.presets,
                  "shape of a model's layer; all = every one (default llama3-8b)")
      ->type_name("NAME,..")
      ->delimiter(',')
      ->group(kGroup);
  text_option(command, "--heads", "Q:KV,..", "query and KV heads, instead of a preset",
              [&axes](const std::string& text) {
                Result<std::vector<Heads>> heads = parse_heads(text);
                if (heads.ok()) axes.heads = std::move(heads.value());
                return heads.status();
              })
      ->group(kGroup);
  add_length_options(command, axes, kGroup);
  command
      .add_option_function<std::vector<std::string>>(
          "--dtype",
          [&axes](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              const Result<DType> type = parse_dtype(text);
              if (!type.ok()) throw CLI::ValidationError("--dtype", type.status().sentence());
              axes.dtypes.push_back(type.value());
            }
          },
          "of K and V: bf16 (default), f16, f32, e4m3, e5m2")
      ->type_name("TYPE,..")
      ->delimiter(',')
      ->group(kGroup);
  command
      .add_flag_callback(
          "--hnd", [&axes] { axes.layout = Layout::hnd; },
          "cache in head-major order (default NHD)")
      ->group(kGroup);
}

}  // namespace deuce::cli
