// SPDX-License-Identifier: Apache-2.0
// Deuce for C++17: an owning plan, exceptions or statuses, and helpers that fill strides.
// Header only, no dependency but deuce.h. Every function has a throwing form and a try_ form that
// returns the status; with -fno-exceptions the try_ forms are the whole set.
// Fields of config and args are documented in deuce.h.
#ifndef DEUCE_DEUCE_HPP
#define DEUCE_DEUCE_HPP

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "deuce/deuce.h"

namespace deuce {

/// A config with every default set; heads, head dims, dtypes and maxima are the caller's.
inline deuce_decode_config make_config() noexcept {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  return config;
}

/// Arguments with struct_size set and every other field zero.
inline deuce_decode_args make_args() noexcept {
  deuce_decode_args args;
  deuce_decode_args_init(&args);
  return args;
}

/// The sentence behind a status that a function of this header has just returned on this thread.
inline std::string error_text(deuce_status status) {
  if (status == DEUCE_VERSION_MISMATCH && deuce_abi_version() != DEUCE_ABI_VERSION) {
    return "this program was compiled for Deuce ABI " + std::to_string(DEUCE_ABI_VERSION) +
           ", the loaded library " + deuce_version() + " has ABI " +
           std::to_string(deuce_abi_version());
  }
  const char* sentence = deuce_last_error();
  return *sentence != '\0' ? sentence : deuce_status_string(status);
}

#if defined(__cpp_exceptions)
/// What the throwing forms throw; what() is the library's sentence.
class Error : public std::runtime_error {
 public:
  /// For a status that was just returned on this thread.
  explicit Error(deuce_status status)
      : std::runtime_error(error_text(status)), status_(status), field_(deuce_last_error_field()) {}

  deuce_status status() const noexcept { return status_; }
  /// The field or parameter at fault, or "".
  const std::string& field() const noexcept { return field_; }

 private:
  deuce_status status_;
  std::string field_;
};

namespace internal {
inline void throw_unless_ok(deuce_status status) {
  if (status != DEUCE_OK) throw Error(status);
}
}  // namespace internal

/// Throws Error unless a plan can be made from this config.
inline void check(const deuce_decode_config& config) {
  internal::throw_unless_ok(deuce_decode_check(&config));
}
#endif

/// OK if a plan can be made from this config.
inline deuce_status try_check(const deuce_decode_config& config) noexcept {
  return deuce_decode_check(&config);
}

/// Owns a plan. Move-only, immutable, shareable between threads; each concurrent run needs its own
/// workspace. A default-made or moved-from plan is empty and refuses to run.
class DecodePlan {
 public:
  DecodePlan() noexcept = default;
  DecodePlan(const DecodePlan&) = delete;
  DecodePlan& operator=(const DecodePlan&) = delete;
  DecodePlan(DecodePlan&& other) noexcept { swap(other); }
  DecodePlan& operator=(DecodePlan&& other) noexcept {
    DecodePlan(std::move(other)).swap(*this);
    return *this;
  }
  ~DecodePlan() { deuce_decode_plan_destroy(plan_); }

  /// Makes a plan into `plan`, which keeps its old value on failure.
  static deuce_status try_create(const deuce_decode_config& config, DecodePlan& plan) noexcept {
    if (deuce_abi_version() != DEUCE_ABI_VERSION) return DEUCE_VERSION_MISMATCH;
    DecodePlan made;
    made.config_ = config;
    deuce_status status = deuce_decode_plan_create(&config, &made.plan_);
    if (status == DEUCE_OK) {
      status = deuce_decode_workspace_size(&config, &made.bytes_, &made.control_bytes_);
    }
    if (status == DEUCE_OK) plan = std::move(made);
    return status;
  }

  /// Bytes that run() needs at alignment 256; 0 for an empty plan.
  std::size_t workspace_bytes() const noexcept { return bytes_; }
  /// Leading part that try_init_workspace() clears; see DEUCE_FLAG_WORKSPACE_KEPT.
  std::size_t workspace_control_bytes() const noexcept { return control_bytes_; }

  /// Clears the control part of a workspace, in stream order on a GPU.
  deuce_status try_init_workspace(void* workspace, std::size_t bytes,
                                  deuce_stream stream = nullptr) const noexcept {
    return deuce_decode_workspace_init(&config_, workspace, bytes, stream);
  }

  /// Computes one step; see deuce_decode_run.
  deuce_status try_run(const deuce_decode_args& args, void* workspace, std::size_t bytes,
                       deuce_stream stream = nullptr) const noexcept {
    return deuce_decode_run(plan_, &args, workspace, bytes, stream);
  }

  /// Writes the JSON object of deuce_decode_explain into `text`, with `args` also the split counts.
  deuce_status try_explain(std::string& text, const deuce_decode_args* args = nullptr) const {
    std::size_t bytes = 0;
    deuce_status status = deuce_decode_explain(plan_, args, nullptr, &bytes);
    if (status != DEUCE_OK) return status;
    std::string room(bytes, '\0');
    status = deuce_decode_explain(plan_, args, room.data(), &bytes);
    if (status != DEUCE_OK) return status;
    room.resize(bytes - 1);  // without the final NUL
    text = std::move(room);
    return DEUCE_OK;
  }

  /// The pending device fault, if any, which it clears; never waits.
  std::optional<deuce_fault> take_fault() const noexcept {
    deuce_fault fault{};
    fault.struct_size = sizeof fault;
    if (deuce_decode_fault(plan_, &fault) != DEUCE_OK) return std::nullopt;
    if (fault.code == DEUCE_FAULT_NONE) return std::nullopt;
    return fault;
  }

  /// False for an empty plan.
  explicit operator bool() const noexcept { return plan_ != nullptr; }
  deuce_decode_plan handle() const noexcept { return plan_; }

  void swap(DecodePlan& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(config_, other.config_);
    std::swap(bytes_, other.bytes_);
    std::swap(control_bytes_, other.control_bytes_);
  }

#if defined(__cpp_exceptions)
  /// Makes a plan or throws Error.
  explicit DecodePlan(const deuce_decode_config& config) {
    internal::throw_unless_ok(try_create(config, *this));
  }

  void init_workspace(void* workspace, std::size_t bytes, deuce_stream stream = nullptr) const {
    internal::throw_unless_ok(try_init_workspace(workspace, bytes, stream));
  }

  void run(const deuce_decode_args& args, void* workspace, std::size_t bytes,
           deuce_stream stream = nullptr) const {
    internal::throw_unless_ok(try_run(args, workspace, bytes, stream));
  }

  std::string explain(const deuce_decode_args* args = nullptr) const {
    std::string text;
    internal::throw_unless_ok(try_explain(text, args));
    return text;
  }
#endif

 private:
  deuce_decode_plan plan_ = nullptr;
  deuce_decode_config config_{};
  std::size_t bytes_ = 0, control_bytes_ = 0;
};

/// Host memory at the alignment that a workspace needs. Empty if there was no memory.
class HostWorkspace {
 public:
  explicit HostWorkspace(std::size_t bytes) noexcept
      : data_(::operator new(bytes, kAlignment, std::nothrow)),
        bytes_(data_ != nullptr ? bytes : 0) {}
  HostWorkspace(const HostWorkspace&) = delete;
  HostWorkspace& operator=(const HostWorkspace&) = delete;
  ~HostWorkspace() { ::operator delete(data_, kAlignment); }

  void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  static constexpr std::align_val_t kAlignment{256};
  void* data_;
  std::size_t bytes_;
};

namespace internal {
inline void set_stride(std::int64_t (&stride)[3], std::int64_t first, std::int64_t second,
                       std::int64_t third) noexcept {
  stride[0] = first;
  stride[1] = second;
  stride[2] = third;
}
}  // namespace internal

/// q [batch, q_len, q_heads, head_dim], out alike with head_dim_v, and lse [batch, q_len, q_heads]
/// or NULL, all dense; with cu_q_len the same strides address [tokens, q_heads, ...].
/// head_dim_v 0 = head_dim.
inline void set_rows(deuce_decode_args& args, const void* q, void* out, float* lse, int q_len,
                     int q_heads, int head_dim, int head_dim_v = 0) noexcept {
  const std::int64_t heads = q_heads, rows = q_len, dim = head_dim;
  const std::int64_t dim_v = head_dim_v != 0 ? head_dim_v : head_dim;
  args.q = q;
  args.out = out;
  args.lse = lse;
  args.q_len = q_len;
  internal::set_stride(args.q_stride, rows * heads * dim, heads * dim, dim);
  internal::set_stride(args.out_stride, rows * heads * dim_v, heads * dim_v, dim_v);
  internal::set_stride(args.lse_stride, rows * heads, heads, 1);
}

/// Dense pages k and v [pages, page, kv_heads, head_dim]. head_dim_v 0 = head_dim.
inline void set_paged_nhd(deuce_decode_args& args, const void* k, const void* v, int pages,
                          int page, int kv_heads, int head_dim, int head_dim_v = 0) noexcept {
  const std::int64_t slots = page, heads = kv_heads, dim = head_dim;
  const std::int64_t dim_v = head_dim_v != 0 ? head_dim_v : head_dim;
  args.k = k;
  args.v = v;
  args.num_pages = pages;
  internal::set_stride(args.k_stride, slots * heads * dim, heads * dim, dim);
  internal::set_stride(args.v_stride, slots * heads * dim_v, heads * dim_v, dim_v);
}

/// Dense pages k and v [pages, kv_heads, page, head_dim]. head_dim_v 0 = head_dim.
inline void set_paged_hnd(deuce_decode_args& args, const void* k, const void* v, int pages,
                          int page, int kv_heads, int head_dim, int head_dim_v = 0) noexcept {
  const std::int64_t slots = page, heads = kv_heads, dim = head_dim;
  const std::int64_t dim_v = head_dim_v != 0 ? head_dim_v : head_dim;
  args.k = k;
  args.v = v;
  args.num_pages = pages;
  internal::set_stride(args.k_stride, heads * slots * dim, dim, slots * dim);
  internal::set_stride(args.v_stride, heads * slots * dim_v, dim_v, slots * dim_v);
}

/// Dense cache without pages, k and v [rows, slots, kv_heads, head_dim]. head_dim_v 0 = head_dim.
inline void set_contiguous(deuce_decode_args& args, const void* k, const void* v, int rows,
                           std::int64_t slots, int kv_heads, int head_dim,
                           int head_dim_v = 0) noexcept {
  const std::int64_t heads = kv_heads, dim = head_dim;
  const std::int64_t dim_v = head_dim_v != 0 ? head_dim_v : head_dim;
  args.k = k;
  args.v = v;
  args.num_pages = rows;
  args.cache_slots = slots;
  internal::set_stride(args.k_stride, slots * heads * dim, heads * dim, dim);
  internal::set_stride(args.v_stride, slots * heads * dim_v, heads * dim_v, dim_v);
}

}  // namespace deuce

#endif
