// SPDX-License-Identifier: Apache-2.0
// P10 and P11: addresses are 64-bit from the first multiply, and counts have no hidden limit. Large
// tensors are mappings of which only the touched pages exist.
#include <map>

#include "kernel/backends.h"
#include "kernel/values.h"
#include "support/content.h"

namespace deuce::testing {
namespace {

constexpr int64_t kTwo31 = int64_t{1} << 31;
constexpr int kBatch = 2, kKvHeads = 2, kGroup = 2, kDim = 64, kPage = 16, kKeys = 40, kColumns = 3;

/// Where everything lies; the default is small and dense.
struct Placement {
  int32_t kv_dtype = DEUCE_BF16;
  int64_t q[3] = {256, 256, 64}, out[3] = {256, 256, 64}, lse[3] = {4, 4, 1};
  int64_t k[3] = {2048, 128, 64}, v[3] = {2048, 128, 64};
  int64_t k_scale[3] = {32, 2, 1}, v_scale[3] = {32, 2, 1};
  int64_t k_descale[2] = {2, 1};
  int64_t table = kColumns;
  int32_t first_id = 0;      // of the six pages
  int32_t first_token = -1;  // packed queries: number of the first token, -1 = not packed
};

/// Memory for logical elements, at any offsets.
class Sparse {
 public:
  Sparse(int64_t last_offset, int64_t element)
      : memory_(static_cast<std::size_t>((last_offset + kDim) * element), 16, true) {}
  std::byte* data() const { return memory_.data(); }
  float& at(int64_t offset) const { return memory_.as<float>()[offset]; }

 private:
  GuardedBuffer memory_;
};

int64_t farthest(const int64_t (&stride)[3], int64_t a, int64_t b, int64_t c) {
  return a * stride[0] + b * stride[1] + c * stride[2];
}

/// Output and LSE bits by logical place, or nothing when the subject refuses.
std::vector<uint32_t> run_placed(const Subject& subject, const Placement& at) {
  const int64_t element = element_bytes(at.kv_dtype);
  const int64_t last_page = at.first_id + kBatch * kColumns - 1, heads = kKvHeads * kGroup;
  const bool packed = at.first_token >= 0;
  const auto row = [&](const int64_t(&stride)[3], int64_t b, int64_t head) {
    return packed ? (at.first_token + b) * stride[1] + head * stride[2]
                  : b * stride[0] + head * stride[2];
  };
  const Sparse k(farthest(at.k, last_page, kPage - 1, kKvHeads - 1), element);
  const Sparse v(farthest(at.v, last_page, kPage - 1, kKvHeads - 1), element);
  const Sparse k_scale(farthest(at.k_scale, last_page, kPage - 1, kKvHeads - 1), 4);
  const Sparse v_scale(farthest(at.v_scale, last_page, kPage - 1, kKvHeads - 1), 4);
  const Sparse k_descale((kBatch - 1) * at.k_descale[0] + kKvHeads, 4);
  const Sparse q(row(at.q, kBatch - 1, heads - 1), 2), out(row(at.out, kBatch - 1, heads - 1), 4);
  const Sparse lse(row(at.lse, kBatch - 1, heads - 1), 4);
  const Sparse table((kBatch - 1) * at.table + kColumns, 4);
  const bool scaled = at.kv_dtype == DEUCE_E4M3;

  float values[kDim];
  for (int b = 0; b < kBatch; ++b) {
    for (int column = 0; column < kColumns; ++column) {
      const int32_t id = at.first_id + (b * kColumns + column) * 5 % 6;  // not in order
      reinterpret_cast<int32_t*>(table.data())[b * at.table + column] = id;
      for (int slot = 0; slot < kPage; ++slot) {
        for (int h = 0; h < kKvHeads; ++h) {
          const int64_t position = column * kPage + slot;
          draw_row(7, b, 'k', h, position, 1, values, kDim);
          store_elements(at.kv_dtype, k.data() + farthest(at.k, id, slot, h) * element, values,
                         kDim);
          draw_row(7, b, 'v', h, position, 1, values, kDim);
          store_elements(at.kv_dtype, v.data() + farthest(at.v, id, slot, h) * element, values,
                         kDim);
          if (!scaled) continue;
          k_scale.at(farthest(at.k_scale, id, slot, h)) = draw_scale(7, b, 4, h, position);
          v_scale.at(farthest(at.v_scale, id, slot, h)) = draw_scale(7, b, 5, h, position);
        }
      }
    }
    for (int64_t head = 0; head < heads; ++head) {
      draw_row(7, b, 'q', head, 0, 1, values, kDim);
      store_elements(DEUCE_BF16, q.data() + row(at.q, b, head) * 2, values, kDim);
    }
    for (int h = 0; h < kKvHeads && scaled; ++h) {
      k_descale.at(b * at.k_descale[0] + h * at.k_descale[1]) = 0.5F + static_cast<float>(b + h);
    }
  }

  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.backend = subject.backend;
  config.emulated_backend = subject.emulated_backend;
  config.num_q_heads = heads;
  config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kDim;
  config.q_dtype = DEUCE_BF16;
  config.kv_dtype = at.kv_dtype;
  config.out_dtype = DEUCE_F32;
  config.page_size = kPage;
  config.max_batch = kBatch;
  config.max_q_len = 1;
  config.max_kv_len = kKeys;

  deuce_decode_args args{};
  args.struct_size = sizeof args;
  args.batch = kBatch;
  args.q_len = 1;
  args.q = q.data(), args.k = k.data(), args.v = v.data(), args.out = out.data();
  args.lse = reinterpret_cast<float*>(lse.data());
  std::copy_n(at.q, 3, args.q_stride), std::copy_n(at.out, 3, args.out_stride);
  std::copy_n(at.lse, 3, args.lse_stride), std::copy_n(at.k, 3, args.k_stride);
  std::copy_n(at.v, 3, args.v_stride);
  const int32_t cu_q_len[] = {at.first_token, at.first_token + 1, at.first_token + 2};
  if (packed) args.cu_q_len = cu_q_len;
  args.kv_len_all = kKeys;
  args.block_table = reinterpret_cast<const int32_t*>(table.data());
  args.block_table_stride = at.table;
  args.block_table_columns = kColumns;
  args.num_pages = static_cast<int32_t>(last_page + 1);
  if (scaled) {
    args.k_token_scale = &k_scale.at(0), args.v_token_scale = &v_scale.at(0);
    std::copy_n(at.k_scale, 3, args.k_token_scale_stride);
    std::copy_n(at.v_scale, 3, args.v_token_scale_stride);
    args.k_descale = &k_descale.at(0);
    std::copy_n(at.k_descale, 2, args.k_descale_stride);
  }

  if (subject.mutate) subject.mutate(config, args);
  deuce_decode_plan plan = nullptr;
  if (deuce_decode_plan_create(&config, &plan) == DEUCE_UNSUPPORTED) return {};
  std::size_t bytes = 0, control = 0;
  deuce_decode_workspace_size(&config, &bytes, &control);
  const GuardedBuffer workspace(bytes, 256);
  const deuce_status status =
      deuce_decode_run(plan, &args, workspace.data(), workspace.bytes(), nullptr);
  EXPECT_EQ(status, DEUCE_OK) << deuce_last_error();
  deuce_decode_plan_destroy(plan);
  std::vector<uint32_t> bits;
  for (int b = 0; b < kBatch; ++b) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int c = 0; c < kDim; ++c) {
        bits.push_back(std::bit_cast<uint32_t>(out.at(row(at.out, b, head) + c)));
      }
      bits.push_back(std::bit_cast<uint32_t>(lse.at(row(at.lse, b, head))));
    }
  }
  return bits;
}

/// Every way to pass 2^31 and 2^32, in elements and in bytes. Witnesses: flashinfer-ai/flashinfer
/// #3130, vllm-project/vllm#50427, Dao-AILab/flash-attention#772, vllm-xpu-kernels PR#445.
std::map<std::string, Placement> placements(int32_t kv_dtype) {
  std::map<std::string, Placement> list;
  const auto add = [&](const std::string& name, auto change) {
    Placement placement;
    placement.kv_dtype = kv_dtype;
    change(placement);
    list[name] = placement;
  };
  for (const int64_t border : {kTwo31 / 4, kTwo31 / 2, kTwo31, 2 * kTwo31}) {
    const auto id = static_cast<int32_t>(border / 2048);
    add("page id below " + std::to_string(border), [=](Placement& p) { p.first_id = id - 3; });
    add("page id above " + std::to_string(border), [=](Placement& p) { p.first_id = id; });
  }
  for (const int32_t id : {2063, 2100, 4130, 4200}) {  // per-layer view of a pool of layers
    add("page stride, id " + std::to_string(id),
        [=](Placement& p) { p.k[0] = p.v[0] = 1040000, p.first_id = id; });
  }
  for (const int64_t stride : {kTwo31 / 2, kTwo31 + 16, 2 * kTwo31 + 16}) {
    const std::string text = std::to_string(stride);
    add("page stride " + text, [=](Placement& p) { p.k[0] = p.v[0] = stride; });
    add("slot stride " + text, [=](Placement& p) { p.k[1] = p.v[1] = stride / 16 + 16; });
    add("head stride " + text, [=](Placement& p) { p.k[2] = p.v[2] = stride; });
    add("q request stride " + text, [=](Placement& p) { p.q[0] = stride; });
    add("q head stride " + text, [=](Placement& p) { p.q[2] = stride; });
    add("out request stride " + text, [=](Placement& p) { p.out[0] = stride; });
    add("out head stride " + text, [=](Placement& p) { p.out[2] = stride; });
    add("lse request stride " + text, [=](Placement& p) { p.lse[0] = stride; });
    add("lse head stride " + text, [=](Placement& p) { p.lse[2] = stride; });
    add("table stride " + text, [=](Placement& p) { p.table = stride; });
    add("k scale page stride " + text, [=](Placement& p) { p.k_scale[0] = stride; });
    add("v scale head stride " + text, [=](Placement& p) { p.v_scale[2] = stride; });
    add("k descale stride " + text, [=](Placement& p) { p.k_descale[0] = stride; });
  }
  add("packed token offset", [](Placement& p) {
    p.first_token = 70000;
    p.q[1] = p.out[1] = p.lse[1] = 65536;
  });
  return list;
}

class Large : public Backends {};

TEST_P(Large, PlacementBeyond31And32BitsChangesNoBit) {
  for (const int32_t kv_dtype : {DEUCE_BF16, DEUCE_E4M3}) {
    Placement dense;
    dense.kv_dtype = kv_dtype;
    const std::vector<uint32_t> expected = run_placed(subject(), dense);
    if (expected.empty()) continue;
    for (const auto& [name, placement] : placements(kv_dtype)) {
      ASSERT_EQ(run_placed(subject(), placement), expected) << name;
    }
  }
}

TEST(LargeMutants, AStrideCutTo32BitsIsNoticed) {
  Placement far;
  far.k[0] = far.v[0] = 2 * kTwo31 + 2048;
  const std::vector<uint32_t> expected = run_placed({.name = "reference"}, far);
  for (const bool in_k : {true, false}) {
    const Subject mutant{.name = "page stride in an int",
                         .mutate = [=](deuce_decode_config&, deuce_decode_args& args) {
                           int64_t& stride = in_k ? args.k_stride[0] : args.v_stride[0];
                           stride = static_cast<int32_t>(stride);
                         }};
    EXPECT_NE(run_placed(mutant, far), expected);
  }
}

Case tiny_case() {
  Case tiny;
  tiny.head_dim_qk = tiny.head_dim_v = 64;
  return tiny;
}

// Witness: flashinfer-ai/flashinfer#3125. Batches beyond 65,535 failed at launch, reported as fine.
TEST_P(Large, BatchesBeyond16BitsAreServed) {
  if (subject().backend == DEUCE_BACKEND_EMULATOR) GTEST_SKIP() << "minutes in the emulator";
  for (const int64_t batch : {65536, 70000}) {
    Case wide = tiny_case();
    wide.requests = requests_of(std::vector<int64_t>(batch, 1));
    wide.workers = batch == 70000 ? 132 : 0;
    ASSERT_EQ(check_if_served(subject(), wide), "") << batch;
  }
}

// Witness: Dao-AILab/flash-attention#1786. Very many requests of a few tokens.
TEST_P(Large, AHundredThousandRequestsOfAFewKeysAreServed) {
  if (subject().backend == DEUCE_BACKEND_EMULATOR) GTEST_SKIP() << "minutes in the emulator";
  Case wide = tiny_case();
  for (int64_t b = 0; b < 100000; ++b) {
    wide.requests.push_back(
        {.kv_len = 1 + b % 3, .kv_start = 0, .q_len = 1, .name = static_cast<uint64_t>(b)});
  }
  wide.page_size = 16;
  ASSERT_EQ(check_if_served(subject(), wide), "");
}

// Witness: deepseek-ai/FlashMLA PR#182. More than 65,535 packed query tokens.
TEST_P(Large, TwoHundredThousandPackedTokensAreServed) {
  Case packed = tiny_case();
  packed.packed_q = true;
  packed.requests = requests_of({2, 1, 3, 1}, 50000);
  packed.lse = LseWish::none;
  ASSERT_EQ(check_if_served(subject(), packed), "");
}

// Witness: Dao-AILab/flash-attention#1786. 71,280 heads after folding.
TEST_P(Large, SeventyThousandFoldedHeadsAreServed) {
  Case folded = tiny_case();
  folded.group = 71280;
  folded.requests = requests_of({3, 1});
  ASSERT_EQ(check_if_served(subject(), folded), "");
}

DEUCE_ON_EVERY_BACKEND(Large);

}  // namespace
}  // namespace deuce::testing
