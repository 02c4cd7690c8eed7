// SPDX-License-Identifier: Apache-2.0
// Any bytes as a config, arguments and tables: refused with field and sentence, or every promise
// that backends build on holds. Input: the two structs, then bytes that fill the tables.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "api/structs.h"
#include "api/validate.h"
#include "fuzz/fuzz_target.h"
#include "plan/cache_view.h"
#include "plan/host_data.h"

namespace {

using deuce::CacheView;
using deuce::Call;
using deuce::Problem;
using deuce::Status;

void require(bool holds) {
  if (!holds) std::abort();
}

bool refused(const Status& status) {
  if (status.ok()) return false;
  require(status.code() == DEUCE_INVALID_ARGUMENT || status.code() == DEUCE_UNSUPPORTED ||
          status.code() == DEUCE_VERSION_MISMATCH);
  require(!status.field().empty() && !status.sentence().empty());
  return true;
}

/// Hands out the input's bytes, then zeros.
class Bytes {
 public:
  Bytes(const uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}

  /// A block of exactly the size that the struct states (as far as the library may read), so that a
  /// sanitizer sees one byte too far.
  template <class T>
  std::vector<uint8_t> sized_struct() {
    std::vector<uint8_t> block(sizeof(T));
    for (uint8_t& byte : block) byte = take();
    uint32_t size = 0;
    std::memcpy(&size, block.data(), sizeof size);
    constexpr uint32_t kLongest = 1024;
    if (size > kLongest && size <= 4096) size = kLongest;
    std::memcpy(block.data(), &size, sizeof size);
    block.resize(size <= kLongest ? std::max<std::size_t>(size, sizeof size) : sizeof size);
    return block;
  }

  /// Small numbers of both signs, the range in which tables are interesting.
  std::vector<int32_t> numbers(int64_t count) {
    std::vector<int32_t> values(static_cast<std::size_t>(count));
    for (int32_t& value : values) value = static_cast<int8_t>(take());
    return values;
  }

 private:
  uint8_t take() { return next_ != end_ ? *next_++ : 0; }

  const uint8_t *next_, *end_;
};

void check_problem(const Problem& problem) {
  require(problem.num_kv_heads > 0 && problem.group > 0);
  require(problem.group * problem.num_kv_heads == problem.num_q_heads);
  require(problem.head_dim_qk > 0 && problem.head_dim_v > 0 && problem.page_size >= 0);
  require(problem.max_batch > 0 && problem.max_q_len > 0 && problem.max_kv_len > 0);
  require(problem.window_left >= -1 && problem.window_right >= -1);
  require(problem.softmax_scale != 0 && problem.softcap >= 0);
  require(problem.num_splits == 0 || problem.split_kv_len == 0);
}

/// Tables of exactly the size that the arguments state, behind the pointers that are not null.
struct Tables {
  std::vector<int32_t> kv_len, kv_start, cu_q_len, cache_row, block_table;
  std::vector<int32_t> page_indptr, page_indices, last_page_len;

  Tables(Call& call, Bytes& bytes) {
    fill(call.kv_len, kv_len, call.batch, bytes);
    fill(call.kv_start, kv_start, call.batch, bytes);
    fill(call.cu_q_len, cu_q_len, int64_t{call.batch} + 1, bytes);
    fill(call.cache_row, cache_row, call.batch, bytes);
    fill(call.last_page_len, last_page_len, call.batch, bytes);
    fill(call.page_indptr, page_indptr, int64_t{call.batch} + 1, bytes);
    int64_t ids = 0;
    for (const int32_t offset : page_indptr) ids = std::max<int64_t>(ids, offset);
    fill(call.page_indices, page_indices, ids, bytes);
    if (call.block_table_columns > 0) {
      const int64_t rows = call.batch - 1;
      fill(call.block_table, block_table, rows * call.block_table_stride + call.block_table_columns,
           bytes);
    }
  }

 private:
  static void fill(const int32_t*& pointer, std::vector<int32_t>& table, int64_t count,
                   Bytes& bytes) {
    if (pointer == nullptr) return;
    table = bytes.numbers(count);
    pointer = table.data();
  }
};

bool small_enough(const Problem& problem, const Call& call) {
  return call.batch <= 16 && call.q_len <= 64 && problem.page_size <= 64 &&
         call.block_table_columns <= 16 && call.block_table_stride >= 0 &&
         call.block_table_stride <= 64;
}

/// Whether some row of the request sees the slot, straight from the definition.
bool is_visible(const Problem& problem, const CacheView& view, int32_t request, int64_t slot) {
  for (int64_t row = 0; row < view.q_len(request); ++row) {
    const int64_t pos = view.kv_len(request) - view.q_len(request) + row;
    const bool causal = !problem.causal || slot <= pos;
    const bool left = problem.window_left < 0 || slot >= pos - problem.window_left;
    const bool right = problem.window_right < 0 || slot <= pos + problem.window_right;
    if (causal && left && right) return true;
  }
  return false;
}

void check_request(const Problem& problem, const Call& call, const CacheView& view, int32_t b) {
  require(view.q_len(b) >= 0 && view.q_len(b) <= call.q_len);
  require(view.kv_start(b) >= 0 && view.kv_start(b) <= view.kv_len(b));
  require(view.kv_len(b) <= view.capacity(b));
  require(view.live(b).count() <= problem.max_kv_len);
  if (!view.paged()) {
    require(call.cache_row == nullptr ||
            (view.cache_row(b) >= 0 && view.cache_row(b) < call.num_pages));
    return;
  }
  for (int64_t slot = view.kv_start(b); slot < view.kv_len(b); ++slot) {
    if (!is_visible(problem, view, b, slot)) continue;
    const int64_t page = view.place(b, slot).page;
    require(page >= 0 && page < call.num_pages);
  }
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  const std::vector<uint8_t> config_block = bytes.sized_struct<deuce_decode_config>();
  const std::vector<uint8_t> args_block = bytes.sized_struct<deuce_decode_args>();

  deuce_decode_config config;
  if (refused(deuce::read_config(reinterpret_cast<const deuce_decode_config*>(config_block.data()),
                                 config))) {
    return 0;
  }
  const auto problem = deuce::validate_config(config);
  if (refused(problem.status())) return 0;
  check_problem(problem.value());

  Call call;
  if (refused(
          deuce::read_args(reinterpret_cast<const deuce_decode_args*>(args_block.data()), call))) {
    return 0;
  }
  if (refused(deuce::validate_args(problem.value(), call))) return 0;
  require(call.batch >= 0 && call.batch <= problem.value().max_batch);
  if (call.batch == 0 || !small_enough(problem.value(), call)) return 0;
  require(call.score_scale != 0 && call.out_scale != 0);

  const Tables tables(call, bytes);
  if (refused(deuce::check_host_data(problem.value(), call))) return 0;
  const CacheView view(problem.value(), call);
  for (int32_t b = 0; b < call.batch; ++b) check_request(problem.value(), call, view, b);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.num_q_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim_qk = config.head_dim_v = 16;
  config.q_dtype = config.kv_dtype = DEUCE_BF16;
  config.max_batch = 4;
  config.max_q_len = 3;
  config.max_kv_len = 64;

  const auto some = reinterpret_cast<const int32_t*>(std::uintptr_t{0x1000});
  deuce_decode_args args;
  deuce_decode_args_init(&args);
  args.batch = 2;
  args.q_len = 2;
  args.q = args.k = args.v = some;
  args.out = const_cast<int32_t*>(some);
  args.q_stride[0] = args.out_stride[0] = 128;
  args.q_stride[1] = args.out_stride[1] = 64;
  args.q_stride[2] = args.out_stride[2] = args.k_stride[2] = args.v_stride[2] = 16;
  args.k_stride[1] = args.v_stride[1] = 32;
  args.num_pages = 8;
  args.kv_len = some;

  deuce_decode_args contiguous = args;
  contiguous.cache_slots = 32;
  const std::string flat = bytes_of(config) + bytes_of(contiguous) + std::string("\x07\x1f", 2);

  config.page_size = 8;
  config.window_left = 9;
  deuce_decode_args table = args;
  table.block_table = some;
  table.block_table_columns = 3;
  table.block_table_stride = 3;
  const std::string ids("\x0c\x14\x03\x05\x7f\x7f\x01\x02", 8);
  const std::string paged = bytes_of(config) + bytes_of(table) + ids;

  config.causal = 1;
  deuce_decode_args indptr = args;
  indptr.kv_len = nullptr;
  indptr.page_indptr = indptr.page_indices = indptr.last_page_len = indptr.cu_q_len = some;
  const std::string offsets("\x00\x02\x03\x04\x05\x00\x02\x05\x01\x02\x03\x04\x05", 13);
  return {flat, paged, bytes_of(config) + bytes_of(indptr) + offsets};
}
