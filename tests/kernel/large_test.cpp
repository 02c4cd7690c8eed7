// SPDX-License-Identifier: Apache-2.0
// P10 and P11: addresses are 64-bit from the first multiply, and counts have no hidden limit. Large
// tensors are mappings of which only the touched pages exist.
#include <algorithm>
#include <cstring>
#include <map>

#include "kernel/backends.h"
#include "kernel/values.h"
#include "support/content.h"

namespace deuce::testing {
namespace {

constexpr int64_t kTwo31 = int64_t{1} << 31;
constexpr int kBatch = 2, kKvHeads = 2, kGroup = 2, kHeads = kKvHeads * kGroup, kDim = 64,
              kPage = 16, kKeys = 40, kColumns = 3;

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

/// Memory for logical elements, at any offsets, where the subject works.
class Sparse {
 public:
  Sparse(const Subject& subject, int64_t last_offset, int64_t element)
      : device_(subject.device), element_(element) {
    const auto bytes = static_cast<std::size_t>((last_offset + kDim) * element);
    if (device_ != nullptr) {
      memory_ = device_->allocate(bytes);
    } else {
      host_ = GuardedBuffer(bytes, 16, true);
      memory_ = host_.data();
    }
  }
  template <class T = std::byte>
  T* data() const {
    return reinterpret_cast<T*>(memory_);
  }
  void put(int64_t offset, const void* values, int64_t count) const {
    std::byte* to = memory_ + offset * element_;
    const auto bytes = static_cast<std::size_t>(count * element_);
    if (device_ != nullptr) {
      device_->upload_to(to, static_cast<const std::byte*>(values), bytes);
    } else {
      std::memcpy(to, values, bytes);
    }
  }
  template <class T>
  void put(int64_t offset, T value) const {
    put(offset, &value, 1);
  }
  void get(int64_t offset, void* values, int64_t count) const {
    const std::byte* from = memory_ + offset * element_;
    const auto bytes = static_cast<std::size_t>(count * element_);
    if (device_ != nullptr) {
      device_->download(static_cast<std::byte*>(values), from, bytes);
    } else {
      std::memcpy(values, from, bytes);
    }
  }

 private:
  DeviceMemory* device_;
  int64_t element_;
  GuardedBuffer host_;
  std::byte* memory_;
};

int64_t farthest(const int64_t (&stride)[3], int64_t a, int64_t b, int64_t c) {
  return a * stride[0] + b * stride[1] + c * stride[2];
}

struct Tensors {
  Sparse q, k, v, out, lse, table, k_scale, v_scale, k_descale;
};

int64_t row_offset(const Placement& at, const int64_t (&stride)[3], int64_t b, int64_t head) {
  return at.first_token >= 0 ? (at.first_token + b) * stride[1] + head * stride[2]
                             : b * stride[0] + head * stride[2];
}

int32_t last_page(const Placement& at) { return at.first_id + kBatch * kColumns - 1; }

Tensors allocate(const Subject& subject, const Placement& at, int32_t out_dtype) {
  const auto cache = [&](const int64_t(&stride)[3], int64_t element) {
    return Sparse(subject, farthest(stride, last_page(at), kPage - 1, kKvHeads - 1), element);
  };
  const auto rows = [&](const int64_t(&stride)[3], int64_t element) {
    return Sparse(subject, row_offset(at, stride, kBatch - 1, kHeads - 1), element);
  };
  const int64_t element = element_bytes(at.kv_dtype);
  return {rows(at.q, 2),
          cache(at.k, element),
          cache(at.v, element),
          rows(at.out, element_bytes(out_dtype)),
          rows(at.lse, 4),
          Sparse(subject, (kBatch - 1) * at.table + kColumns, 4),
          cache(at.k_scale, 4),
          cache(at.v_scale, 4),
          Sparse(subject, (kBatch - 1) * at.k_descale[0] + kKvHeads, 4)};
}

void fill(const Tensors& tensors, const Placement& at, bool token_scales) {
  float values[kDim];
  std::byte bits[kDim * 4];
  const auto put = [&](const Sparse& tensor, int64_t offset, int32_t dtype) {
    store_elements(dtype, bits, values, kDim);
    tensor.put(offset, bits, kDim);
  };
  for (int b = 0; b < kBatch; ++b) {
    for (int column = 0; column < kColumns; ++column) {
      const int32_t id = at.first_id + (b * kColumns + column) * 5 % 6;  // not in order
      tensors.table.put(b * at.table + column, id);
      for (int slot = 0; slot < kPage; ++slot) {
        for (int h = 0; h < kKvHeads; ++h) {
          const int64_t position = column * kPage + slot;
          draw_row(7, b, 'k', h, position, 1, values, kDim);
          put(tensors.k, farthest(at.k, id, slot, h), at.kv_dtype);
          draw_row(7, b, 'v', h, position, 1, values, kDim);
          put(tensors.v, farthest(at.v, id, slot, h), at.kv_dtype);
          if (!token_scales) continue;
          tensors.k_scale.put(farthest(at.k_scale, id, slot, h), draw_scale(7, b, 4, h, position));
          tensors.v_scale.put(farthest(at.v_scale, id, slot, h), draw_scale(7, b, 5, h, position));
        }
      }
    }
    for (int64_t head = 0; head < kHeads; ++head) {
      draw_row(7, b, 'q', head, 0, 1, values, kDim);
      put(tensors.q, row_offset(at, at.q, b, head), DEUCE_BF16);
    }
    for (int h = 0; h < kKvHeads && at.kv_dtype == DEUCE_E4M3; ++h) {
      tensors.k_descale.put(b * at.k_descale[0] + h * at.k_descale[1],
                            0.5F + static_cast<float>(b + h));
    }
  }
}

/// GPU kernels have none.
bool has_token_scales(const Subject& subject, const Placement& at) {
  return at.kv_dtype == DEUCE_E4M3 && subject.device == nullptr;
}

deuce_decode_config config_of(const Subject& subject, const Placement& at, int32_t out_dtype) {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.backend = subject.backend;
  config.emulated_backend = subject.emulated_backend;
  config.num_q_heads = kHeads;
  config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kDim;
  config.q_dtype = DEUCE_BF16;
  config.kv_dtype = at.kv_dtype;
  config.out_dtype = out_dtype;
  config.page_size = kPage;
  config.max_batch = kBatch;
  config.max_q_len = 1;
  config.max_kv_len = kKeys;
  return config;
}

deuce_decode_args args_of(const Tensors& tensors, const Placement& at, bool token_scales) {
  deuce_decode_args args{};
  args.struct_size = sizeof args;
  args.batch = kBatch;
  args.q_len = 1;
  args.q = tensors.q.data(), args.k = tensors.k.data(), args.v = tensors.v.data();
  args.out = tensors.out.data();
  args.lse = tensors.lse.data<float>();
  std::copy_n(at.q, 3, args.q_stride), std::copy_n(at.out, 3, args.out_stride);
  std::copy_n(at.lse, 3, args.lse_stride), std::copy_n(at.k, 3, args.k_stride);
  std::copy_n(at.v, 3, args.v_stride);
  args.kv_len_all = kKeys;
  args.block_table = tensors.table.data<const int32_t>();
  args.block_table_stride = at.table;
  args.block_table_columns = kColumns;
  args.num_pages = last_page(at) + 1;
  if (token_scales) {
    args.k_token_scale = tensors.k_scale.data<float>();
    args.v_token_scale = tensors.v_scale.data<float>();
    std::copy_n(at.k_scale, 3, args.k_token_scale_stride);
    std::copy_n(at.v_scale, 3, args.v_token_scale_stride);
  }
  if (at.kv_dtype == DEUCE_E4M3) {
    args.k_descale = tensors.k_descale.data<float>();
    std::copy_n(at.k_descale, 2, args.k_descale_stride);
  }
  return args;
}

struct Release {
  DeviceMemory* device;
  ~Release() {
    if (device != nullptr) device->release_all();
  }
};

/// Output and LSE bits by logical place, or nothing when the subject refuses.
std::vector<uint32_t> run_placed(const Subject& subject, const Placement& at) {
  // fp32 shows most, but a kernel that writes the type of q only must not escape for that.
  const bool narrow = subject.emulated_backend == DEUCE_BACKEND_BLACKWELL;
  const int32_t out_dtype = narrow ? DEUCE_BF16 : DEUCE_F32;
  deuce_decode_config config = config_of(subject, at, out_dtype);
  // Token scales, where the subject has them.
  const bool token_scales = at.kv_dtype == DEUCE_E4M3 && subject.device == nullptr &&
                            subject.emulated_backend != DEUCE_BACKEND_HOPPER;
  const Tensors tensors = allocate(subject, at, out_dtype);
  const Sparse cu_q_len(subject, kBatch + 1, 4);
  fill(tensors, at, token_scales);
  deuce_decode_args args = args_of(tensors, at, token_scales);
  if (at.first_token >= 0) {
    for (int b = 0; b <= kBatch; ++b) cu_q_len.put(b, at.first_token + b);
    args.cu_q_len = cu_q_len.data<const int32_t>();
  }
  if (subject.mutate) subject.mutate(config, args);
  deuce_decode_plan plan = nullptr;
  const Release release{subject.device};
  const deuce_status planned = deuce_decode_plan_create(&config, &plan);
  served_cases().note(planned);
  if (planned == DEUCE_UNSUPPORTED) return {};
  std::size_t bytes = 0, control = 0;
  deuce_decode_workspace_size(&config, &bytes, &control);
  GuardedBuffer host;
  std::byte* workspace;
  if (subject.device != nullptr) {
    workspace = subject.device->allocate(bytes);
  } else {
    host = GuardedBuffer(bytes, 256);
    workspace = host.data();
  }
  const deuce_status status = deuce_decode_run(plan, &args, workspace, bytes, nullptr);
  EXPECT_EQ(status, DEUCE_OK) << deuce_last_error();
  std::vector<uint32_t> bits;
  for (int b = 0; b < kBatch; ++b) {
    for (int64_t head = 0; head < kHeads; ++head) {
      uint32_t row[kDim + 1] = {};
      tensors.out.get(row_offset(at, at.out, b, head), row, kDim);
      tensors.lse.get(row_offset(at, at.lse, b, head), &row[kDim], 1);
      bits.insert(bits.end(), row, row + kDim + 1);
    }
  }
  deuce_decode_plan_destroy(plan);
  return bits;
}

/// Every way to pass 2^31 and 2^32, in elements and in bytes. Witnesses: flashinfer-ai/flashinfer
/// #3130, vllm-project/vllm#50427, Dao-AILab/flash-attention#772, vllm-xpu-kernels PR#445.
std::map<std::string, Placement> placements(int32_t kv_dtype, bool token_scales) {
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
    add("slot stride " + text, [=](Placement& p) { p.k[1] = p.v[1] = (stride / 256 + 1) * 16; });
    add("head stride " + text, [=](Placement& p) { p.k[2] = p.v[2] = stride; });
    add("q request stride " + text, [=](Placement& p) { p.q[0] = stride; });
    add("q head stride " + text, [=](Placement& p) { p.q[2] = stride; });
    add("out request stride " + text, [=](Placement& p) { p.out[0] = stride; });
    add("out head stride " + text, [=](Placement& p) { p.out[2] = stride; });
    add("lse request stride " + text, [=](Placement& p) { p.lse[0] = stride; });
    add("lse head stride " + text, [=](Placement& p) { p.lse[2] = stride; });
    add("table stride " + text, [=](Placement& p) { p.table = stride; });
    if (token_scales) {
      add("k scale page stride " + text, [=](Placement& p) { p.k_scale[0] = stride; });
      add("v scale head stride " + text, [=](Placement& p) { p.v_scale[2] = stride; });
    }
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
    const bool token_scales = has_token_scales(subject(), dense);
    for (const auto& [name, placement] : placements(kv_dtype, token_scales)) {
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
  if (leaves_out(subject().backend == DEUCE_BACKEND_EMULATOR, "all"))
    GTEST_SKIP() << "minutes in the emulator";
  for (const int64_t batch : {65536, 70000}) {
    Case wide = tiny_case();
    wide.requests = requests_of(std::vector<int64_t>(batch, 1));
    wide.workers = batch == 70000 ? 132 : 0;
    ASSERT_EQ(check_if_served(subject(), wide), "") << batch;
  }
}

// Witness: Dao-AILab/flash-attention#1786. Very many requests of a few tokens.
TEST_P(Large, AHundredThousandRequestsOfAFewKeysAreServed) {
  if (leaves_out(subject().backend == DEUCE_BACKEND_EMULATOR, "all"))
    GTEST_SKIP() << "minutes in the emulator";
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
  if (leaves_out(subject().runs_every_matrix(), "all"))
    GTEST_SKIP() << "a minute in the emulator; the GPU serves them";
  Case packed = tiny_case();
  packed.packed_q = true;
  packed.requests = requests_of({2, 1, 3, 1}, 50000);
  packed.lse = LseWish::none;
  ASSERT_EQ(check_if_served(subject(), packed), "");
}

// Witness: Dao-AILab/flash-attention#1786. 71,280 heads after folding.
TEST_P(Large, SeventyThousandFoldedHeadsAreServed) {
  if (leaves_out(subject().runs_every_matrix(), "all"))
    GTEST_SKIP() << "20 s in the emulator; the GPU serves them";
  Case folded = tiny_case();
  folded.group = 71280;
  folded.requests = requests_of({3, 1});
  ASSERT_EQ(check_if_served(subject(), folded), "");
}

DEUCE_ON_EVERY_BACKEND(Large);

}  // namespace
}  // namespace deuce::testing
