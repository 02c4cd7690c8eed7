// SPDX-License-Identifier: Apache-2.0
// Deuce, decode attention: the C ABI. C11 and C++17, no CUDA header needed.
//
// Attention of 1..n new tokens per request against a long key-value cache: GQA at any ratio,
// contiguous or paged caches, lengths read where the work is done, one launch, no planning per
// step. Made for engines and bindings of any language; C++ programs include deuce.hpp instead.
//
// In order: fill a config (deuce_decode_config_init), ask for the workspace
// (deuce_decode_workspace_size), make a plan (deuce_decode_plan_create), run it at every step
// (deuce_decode_run). Functions are at the end of this file.
//
// What must hold: all-zero fields mean a sensible default or "off" unless a field says otherwise;
// no field is accepted and ignored; a refused call leaves output, LSE and workspace untouched.
// Names below: b request, i row of the request (one new token), j key slot counted from slot 0,
// h query head, hq and hkv heads, pos = kv_len - q_len + i the row's own position.
// Strides count elements, not bytes; the last dimension is contiguous. NHD and HND are strides.
// Structs begin with struct_size and only grow at their end: a shorter struct of an older caller
// reads as zeros beyond its end, a longer one is accepted if the unknown tail is all zero.
#ifndef DEUCE_DEUCE_H
#define DEUCE_DEUCE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define DEUCE_API __attribute__((visibility("default")))
#else
#define DEUCE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// Version of this header's structs and functions; compare with deuce_abi_version() after loading.
enum { DEUCE_ABI_VERSION = 1 };

/// A CUDA stream: takes a cudaStream_t or CUstream without a cast, since CUDA uses the same tag.
/// NULL = the legacy default stream. Host backends (cpu, reference, emulator) ignore it.
typedef struct CUstream_st* deuce_stream;

/// An immutable plan; see deuce_decode_plan_create.
typedef struct deuce_decode_plan_st* deuce_decode_plan;

/// Outcome of a call, one of DEUCE_OK .. DEUCE_HAZARD. The sentence that says what to change is in
/// deuce_last_error().
typedef int32_t deuce_status;
enum {
  DEUCE_OK = 0,                   ///< Done.
  DEUCE_INVALID_ARGUMENT = 1,     ///< A value that can never be right, or two that contradict.
  DEUCE_UNSUPPORTED = 2,          ///< Legal, but not on this backend, device or version.
  DEUCE_WORKSPACE_TOO_SMALL = 3,  ///< The sentence holds the bytes given and the bytes needed.
  DEUCE_NO_DEVICE = 4,            ///< No driver, no device, or no kernel for it in this library.
  DEUCE_DEVICE_FAULT = 5,         ///< An earlier run met inconsistent device data; see deuce_fault.
  DEUCE_RUNTIME_ERROR = 6,        ///< CUDA or the operating system refused; its text is kept.
  DEUCE_VERSION_MISMATCH = 7,     ///< A struct has fields that this library does not know.
  DEUCE_HAZARD = 8                ///< Emulator only: a race, deadlock or broken contract was found.
};

/// Ways to run the same call. AUTO goes by where the tensors live (device_type): cpu for host
/// memory; for CUDA memory hopper on compute capability 9.0 and blackwell on 10.0 and 10.3. It
/// never falls back from a GPU to a CPU path.
enum {
  DEUCE_BACKEND_AUTO = 0,
  DEUCE_BACKEND_CPU = 1,        ///< SIMD and threads on host memory.
  DEUCE_BACKEND_HOPPER = 2,     ///< sm_90a kernel on CUDA memory.
  DEUCE_BACKEND_BLACKWELL = 3,  ///< sm_100a kernel on CUDA memory.
  DEUCE_BACKEND_EMULATOR = 4,   ///< The source of a GPU kernel, run and checked on host memory.
  DEUCE_BACKEND_REFERENCE = 5   ///< Double precision, three loops, host memory.
};

/// Element types. In DLPack's (code, bits): (2, 32), (2, 16), (4, 16), (10, 8), (12, 8).
/// e4m3 has NaN and no infinity; e5m2 has both.
enum { DEUCE_F32 = 1, DEUCE_F16 = 2, DEUCE_BF16 = 3, DEUCE_E4M3 = 4, DEUCE_E5M2 = 5 };

/// Bits of deuce_decode_config::flags.
enum {
  /// Record in-kernel events into deuce_decode_args::trace. No backend does so yet: UNSUPPORTED.
  DEUCE_FLAG_TRACE = 1,
  /// The caller promises that the workspace's control part is zero (deuce_decode_workspace_init, or
  /// as a finished run left it), so run() does not clear it. A broken promise gives wrong or
  /// unwritten rows, never a hang.
  DEUCE_FLAG_WORKSPACE_KEPT = 2,
  /// Programmatic dependent launch: run() may start while the kernel before it in the stream still
  /// runs. The caller promises that of what run() reads, kernels that may still run then write no
  /// more than q and the K and V of each request's last q_len positions, and that no other request
  /// reads these slots as older tokens. Lengths, tables and scales are read at once. Needs
  /// DEUCE_FLAG_WORKSPACE_KEPT. Source: CUDA's griddepcontrol; hopper only, refused elsewhere.
  DEUCE_FLAG_PDL = 4
};

/// What does not change from step to step. Always start from deuce_decode_config_init.
/// Read on the host when a plan is made, checked or sized; never kept.
typedef struct deuce_decode_config {
  /// sizeof(deuce_decode_config) as the caller was compiled; set by deuce_decode_config_init.
  /// Bytes. An unknown non-zero tail: DEUCE_VERSION_MISMATCH; an end in a field: INVALID_ARGUMENT.
  uint32_t struct_size;

  /// DEUCE_FLAG_* bits, 0 = none. Unknown bits: INVALID_ARGUMENT. A flag that the backend lacks:
  /// UNSUPPORTED.
  uint32_t flags;

  /// Who computes, DEUCE_BACKEND_*. 0 = AUTO. Environment variable DEUCE_BACKEND fills in for AUTO.
  /// A backend that is not in this library: NO_DEVICE for the GPU ones, else UNSUPPORTED.
  int32_t backend;

  /// EMULATOR only: whose kernel source is run, DEUCE_BACKEND_HOPPER or _BLACKWELL. 0 = BLACKWELL.
  /// Takes and refuses what that backend does. Set with another backend: INVALID_ARGUMENT.
  int32_t emulated_backend;

  /// Where all tensors and the workspace live, DLPack's values: 1 CPU, 2 CUDA. 0 = implied by
  /// backend (AUTO: CPU). Contradicting the backend: INVALID_ARGUMENT.
  int32_t device_type;

  /// CUDA device number. -1 (set by the initialiser) = the current device when the plan is made.
  /// Host backends take -1 or 0. A run switches to the plan's device and back where it differs.
  int32_t device_id;

  /// Query heads, 1 .. 1048576, a multiple of num_kv_heads. Query head h reads KV head
  /// h / (num_q_heads / num_kv_heads). Required.
  int32_t num_q_heads;

  /// Key-value heads, 1 .. 1048576. Required.
  int32_t num_kv_heads;

  /// Elements of a query and of a key, 1 .. 4096. Required. Sizes without a kernel: UNSUPPORTED.
  int32_t head_dim_qk;

  /// Elements of a value and of an output row, 1 .. 4096. Required. Sizes without a kernel:
  /// UNSUPPORTED.
  int32_t head_dim_v;

  /// Type of q, DEUCE_F32 .. DEUCE_E5M2. Required. Mixes without a kernel: UNSUPPORTED.
  int32_t q_dtype;

  /// Type of k and v, DEUCE_F32 .. DEUCE_E5M2. Required.
  int32_t kv_dtype;

  /// Type of out. 0 = as q_dtype, bf16 for an fp8 q. The fp32 accumulator is rounded to it once.
  /// fp8: UNSUPPORTED.
  int32_t out_dtype;

  /// Type of sink. 0 = f32. fp8, and on blackwell all but f32: UNSUPPORTED, with a sink or without.
  int32_t sink_dtype;

  /// Tokens in a page of the cache, 0 .. 16777216. 0 = contiguous cache without a page table.
  /// cpu and reference take any size, hopper any but odd ones with an e4m3 cache of head dim 64,
  /// blackwell 8 and more: UNSUPPORTED otherwise.
  int32_t page_size;

  /// Most requests of a run, 1 .. 16777216. Required. Bounds the workspace and captured graphs.
  int32_t max_batch;

  /// Most query rows of a request, 1 .. 1048576. Required. Bounds the workspace and captured
  /// graphs. Times the query heads of a KV head beyond 2147483647: UNSUPPORTED.
  int32_t max_q_len;

  /// 1 = row i sees keys 0 .. pos only (bottom-right aligned, as in FlashAttention since 2.1);
  /// 0 = off. With one row per request it removes nothing. Other values: INVALID_ARGUMENT.
  int32_t causal;

  /// Most live keys of a request, 1 .. 2147483647. Required. Bounds the workspace and captured
  /// graphs.
  int64_t max_kv_len;

  /// Keys seen before the row's own position: j >= pos - window_left. Tokens, inclusive; 0 = none
  /// before, -1 (set by the initialiser) = all. Below -1: INVALID_ARGUMENT. A model's
  /// "sliding_window = W" counts the current token: W - 1 here. FlashInfer's window_left is the
  /// same.
  int32_t window_left;

  /// Keys seen after the row's own position: j <= pos + window_right. Tokens, inclusive; 0 = none
  /// after, -1 (set by the initialiser) = all. Below -1: INVALID_ARGUMENT.
  int32_t window_right;

  /// Factor on q . k before softcap, masks and softmax. 0 = 1 / sqrt(head_dim_qk). Of either sign,
  /// 1.4e-45 .. 2.35e38 (scores are fp32 numbers in log2 units); all else: INVALID_ARGUMENT.
  float softmax_scale;

  /// c > 0: score = c * tanh(score / c), after all scales, before the mask. 0 = off. Negative,
  /// above 2.35e38, NaN, or scale / c no normal fp32 number: INVALID_ARGUMENT. Source: Gemma 2.
  float softcap;

  /// Base of the log-sum-exp output: 0 = natural (FlashAttention), 2 = base 2 (FlashInfer).
  /// Other values: INVALID_ARGUMENT.
  int32_t lse_base;

  /// Ranges that each (request, KV head) is cut into: 0 = as the work balances best, 1 = never cut,
  /// n = exactly n, empty ones included. Above 256: INVALID_ARGUMENT. Not with split_kv_len.
  int32_t num_splits;

  /// > 0: cut at multiples of this many keys from the first live slot and nowhere else, so that a
  /// request's bits do not depend on the rest of the batch. A multiple of 128, else
  /// INVALID_ARGUMENT. 0 = off. Environment variable DEUCE_SPLIT_KV_LEN fills in for 0.
  int32_t split_kv_len;

  /// Score tiles in flight: 0 = choose, 1 = base, 2 = ping-pong, 3 where tensor memory has room.
  /// The same bits in every case. Above 3: INVALID_ARGUMENT; above 1 on cpu, reference and
  /// hopper: UNSUPPORTED. Environment variable DEUCE_SCORE_SLOTS fills in for 0.
  int32_t score_slots;

  /// SMs left to other kernels (cpu: threads left to others). 0 = use all. Negative:
  /// INVALID_ARGUMENT.
  int32_t sm_margin;

  /// blackwell: copies of the query rows in the lane quarters, 1, 2 or 4. 0 = choose, by head_dim,
  /// heads and max_q_len; 1 with split_kv_len. Another order of additions, so other bits.
  /// UNSUPPORTED above 1 on every other backend, and where that many copies of the query heads of
  /// one KV head exceed 128 rows.
  int32_t row_replicas;

  /// EMULATOR only: number of the schedule to run; a hazard's sentence names it for replay. Set
  /// with another backend: INVALID_ARGUMENT.
  uint64_t emulator_seed;
} deuce_decode_config;

/// Sets every field to its default; heads, head dims, dtypes and maxima are left to the caller.
/// Inline, so that it records the size of the struct that the caller was compiled with.
static inline void deuce_decode_config_init(deuce_decode_config* config) {
  memset(config, 0, sizeof *config);
  config->struct_size = (uint32_t)sizeof *config;
  config->device_id = config->window_left = config->window_right = -1;
}

/// What changes from step to step: pointers, strides and this step's sizes. Start from
/// deuce_decode_args_init. The struct is read on the host during the call and not kept. The memory
/// behind the pointers is read where the plan's backend works: at run time on the device for GPU
/// backends, so that a captured graph follows new contents; during the call on the host otherwise.
/// Pointers must be aligned to their element and, for q, k, v and out on GPU backends, to 16 bytes.
typedef struct deuce_decode_args {
  /// sizeof(deuce_decode_args) as the caller was compiled; set by deuce_decode_args_init. Bytes.
  /// An unknown non-zero tail: DEUCE_VERSION_MISMATCH; an end inside a field: INVALID_ARGUMENT.
  uint32_t struct_size;

  /// The caller's mark, such as layer or step; copied into fault records and traces. Any value.
  uint32_t tag;

  /// Requests, 0 .. max_batch. 0 = nothing to do: success, and every pointer may be null.
  int32_t batch;

  /// Query rows of each request; with cu_q_len the most rows of any request. 1 .. max_q_len.
  int32_t q_len;

  /// Queries. Shape [batch, q_len, hq, head_dim_qk], or [tokens, hq, head_dim_qk] with cu_q_len;
  /// q_dtype. Required.
  const void* q;

  /// Keys. Shape [pages, page_size, hkv, head_dim_qk] in the order that k_stride says, or
  /// [rows, cache_slots, hkv, head_dim_qk] without pages; kv_dtype. Required unless the pool is
  /// empty. Slots that no row sees are never part of a result, whatever bytes they hold.
  const void* k;

  /// Values. As k, with head_dim_v and v_stride.
  const void* v;

  /// Output. Shape as q with head_dim_v; out_dtype. Required. A row that sees no key gets zeros.
  void* out;

  /// Log-sum-exp of the scaled, capped and masked scores and the sink. Shape as out without the
  /// last dimension, fp32, addressed by lse_stride, in the base lse_base. NULL = not wanted, which
  /// changes no bit of out. A row that sees no key gets -infinity, or the sink.
  float* lse;

  /// Elements between requests, rows and heads of q: element (b, i, h) is at b * q_stride[0] +
  /// i * q_stride[1] + h * q_stride[2]; with cu_q_len, token t = cu_q_len[b] + i is at
  /// t * q_stride[1] + h * q_stride[2] and q_stride[0] is not used. Any sign and order.
  /// GPU backends need multiples of 16 bytes and no negative ones: UNSUPPORTED.
  int64_t q_stride[3];

  /// Elements between requests, rows and heads of out, addressed as q. Strides that would make two
  /// neighbours overlap: INVALID_ARGUMENT.
  int64_t out_stride[3];

  /// Elements between requests, rows and heads of lse, addressed as q. Strides that would make two
  /// neighbours overlap: INVALID_ARGUMENT. Not used while lse is NULL.
  int64_t lse_stride[3];

  /// Elements between pages (or cache rows), slots and heads of k. Any sign and order, 0 = shared:
  /// {0, ...} lets all requests share one cache row. GPU backends need multiples of 16 bytes
  /// and no negative ones: UNSUPPORTED. Extents times strides beyond 64 bits: INVALID_ARGUMENT.
  int64_t k_stride[3];

  /// Elements between pages (or cache rows), slots and heads of v. As k_stride.
  int64_t v_stride[3];

  /// First token of each request in packed q, out and lse. Shape [batch + 1], int32, ascending;
  /// NULL = q_len rows each. A request may have no row. Descending, or a request of more than q_len
  /// rows: DEUCE_FAULT_Q_LEN. Same meaning as cu_seqlens_q in FlashAttention.
  const int32_t* cu_q_len;

  /// Live keys of each request, counted from slot 0 of its cache: with kv_start the live slots are
  /// kv_start .. kv_len - 1. Shape [batch], int32; NULL = kv_len_all for every request, or what
  /// last_page_len says. 0 = no key: output 0, LSE -infinity. More than the slots of the table or
  /// cache row, or more than max_kv_len live keys: DEUCE_FAULT_KV_LEN; nothing is read out of
  /// bounds. Same meaning as cache_seqlens in FlashAttention and seq_lens in TensorRT-LLM.
  const int32_t* kv_len;

  /// First live slot of each request. Shape [batch], int32; NULL = 0. Outside 0 .. kv_len:
  /// DEUCE_FAULT_KV_START. Same meaning as cache_leftpad in FlashAttention.
  const int32_t* kv_start;

  /// Live keys of every request while kv_len is NULL; tokens, host value. Must be 0 when kv_len or
  /// page_indptr gives the lengths: INVALID_ARGUMENT. Fixed in a captured graph.
  int64_t kv_len_all;

  /// Contiguous cache: slots of a cache row, the capacity that kv_len is checked against. Tokens.
  /// Must be 0 with pages: INVALID_ARGUMENT.
  int64_t cache_slots;

  /// Contiguous cache: cache row of each request. Shape [batch], int32; NULL = row b for request b.
  /// Outside 0 .. num_pages - 1: DEUCE_FAULT_CACHE_ROW. With pages: INVALID_ARGUMENT. Same meaning
  /// as cache_batch_idx in FlashAttention.
  const int32_t* cache_row;

  /// Page table, first style: page ids of each request in order of its tokens. Shape
  /// [batch, block_table_columns], int32. NULL only without columns or with page_indptr. Columns
  /// from ceil(kv_len / page_size) on are never read, and pages that hold no visible key are never
  /// touched. An id outside 0 .. num_pages - 1 in a page that is needed: DEUCE_FAULT_PAGE_ID.
  /// Same meaning as in FlashAttention, vLLM and TensorRT-LLM.
  const int32_t* block_table;

  /// Elements between the rows of block_table. Host value; no alignment is asked.
  int64_t block_table_stride;

  /// Columns of block_table; pages, 0 or more. 0 is legal if all lengths are 0.
  int32_t block_table_columns;

  /// Pages in the pool (upper end of page ids), or rows of a contiguous cache. 0 = no page; for a
  /// contiguous cache without cache_row 0 = batch. Fewer rows than requests without cache_row:
  /// INVALID_ARGUMENT, unless k_stride[0] and v_stride[0] are 0 (one row shared by all).
  int32_t num_pages;

  /// Page table, second style: where each request's ids start in page_indices. Shape [batch + 1],
  /// int32, ascending. NULL = first style. Both styles at once: INVALID_ARGUMENT. Same meaning as
  /// paged_kv_indptr in FlashInfer.
  const int32_t* page_indptr;

  /// Second style: page ids, request after request. Shape [page_indptr[batch]], int32. Checked and
  /// skipped as block_table. NULL only if no request has a page. Same meaning as paged_kv_indices
  /// in FlashInfer.
  const int32_t* page_indices;

  /// Second style: tokens in each request's last page, 1 .. page_size. Shape [batch], int32. Gives
  /// the length page_size * (pages - 1) + last_page_len, 0 without pages; with kv_len as well,
  /// kv_len decides and this is not read. Outside its range: DEUCE_FAULT_LAST_PAGE_LEN. Same
  /// meaning as paged_kv_last_page_len in FlashInfer.
  const int32_t* last_page_len;

  /// Learned attention sink: one logit per query head that joins the softmax denominator only,
  /// neither scaled, capped nor masked; at most 2.35e38 in magnitude. Shape [hq], contiguous,
  /// sink_dtype, natural log. NULL = none. Source: StreamingLLM and gpt-oss.
  const void* sink;

  /// Factor that turns stored fp8 q into its value, by request and KV head. Shape [batch, hkv],
  /// fp32, addressed by q_descale_stride. NULL = 1. For another q_dtype: INVALID_ARGUMENT. Same
  /// meaning as in FlashAttention 3.
  const float* q_descale;

  /// Factor that turns stored fp8 k into its value. As q_descale, for kv_dtype.
  const float* k_descale;

  /// Factor that turns stored fp8 v into its value. As q_descale, for kv_dtype.
  const float* v_descale;

  /// Elements between requests and KV heads of q_descale; 0 = one value for all.
  int64_t q_descale_stride[2];

  /// Elements between requests and KV heads of k_descale; 0 = one value for all.
  int64_t k_descale_stride[2];

  /// Elements between requests and KV heads of v_descale; 0 = one value for all.
  int64_t v_descale_stride[2];

  /// Factor of each cache slot and KV head of an fp8 k, on top of k_descale. Shape as k without the
  /// last dimension, fp32, addressed by k_token_scale_stride. NULL = 1. For another kv_dtype:
  /// INVALID_ARGUMENT. Scales of slots that no row sees are never part of a result.
  const float* k_token_scale;

  /// Factor of each cache slot and KV head of an fp8 v, on top of v_descale. As k_token_scale.
  const float* v_token_scale;

  /// Elements between pages (or cache rows), slots and heads of k_token_scale.
  int64_t k_token_scale_stride[3];

  /// Elements between pages (or cache rows), slots and heads of v_token_scale.
  int64_t v_token_scale_stride[3];

  /// Factor on all scores, beside softmax_scale. Host value, fixed in a captured graph. 0 = 1. The
  /// limits of softmax_scale and softcap hold for the product of both: INVALID_ARGUMENT.
  float score_scale;

  /// Factor on out. Host value, fixed in a captured graph. 0 = 1. NaN and infinity:
  /// INVALID_ARGUMENT.
  float out_scale;

  /// Reserved for tree masks of speculative decoding; must be NULL: UNSUPPORTED.
  const uint64_t* tree_mask;

  /// Reserved; must be 0: UNSUPPORTED.
  int64_t tree_mask_stride;

  /// Room for trace records in the memory of the tensors. Required with DEUCE_FLAG_TRACE, refused
  /// without it: INVALID_ARGUMENT.
  void* trace;

  /// Bytes at trace. Events that do not fit are dropped and counted.
  size_t trace_bytes;
} deuce_decode_args;

/// Sets struct_size and zeros every other field.
static inline void deuce_decode_args_init(deuce_decode_args* args) {
  memset(args, 0, sizeof *args);
  args->struct_size = (uint32_t)sizeof *args;
}

/// What a kernel can find in device data that the host could not see.
enum {
  DEUCE_FAULT_NONE = 0,
  DEUCE_FAULT_KV_LEN = 1,         ///< kv_len beyond the cache's capacity or max_kv_len.
  DEUCE_FAULT_PAGE_ID = 2,        ///< A page id outside the pool, in a page that is needed.
  DEUCE_FAULT_Q_LEN = 3,          ///< cu_q_len descends, or gives more rows than q_len.
  DEUCE_FAULT_LAST_PAGE_LEN = 4,  ///< last_page_len outside 1 .. page_size.
  DEUCE_FAULT_KV_START = 5,       ///< kv_start outside 0 .. kv_len.
  DEUCE_FAULT_CACHE_ROW = 6       ///< cache_row outside the cache.
};

/// The first inconsistency that a run found in device data. The faulty request's output and LSE are
/// NaN, all others are unaffected, and nothing was read out of bounds.
typedef struct deuce_fault {
  /// sizeof(deuce_fault), set by the caller before the call. Bytes.
  uint32_t struct_size;

  /// DEUCE_FAULT_*; NONE = nothing pending, the other fields are then 0 (column -1).
  int32_t code;

  /// Index of the faulty request in its batch.
  int32_t request;

  /// Column of the page table for a page id, else -1.
  int32_t column;

  /// The value that was found.
  int64_t value;

  /// The lowest value that would have been right.
  int64_t lowest;

  /// The highest value that would have been right.
  int64_t highest;

  /// deuce_decode_args::tag of the run that found it.
  uint32_t tag;

  /// For later versions; always written as 0.
  uint32_t reserved;
} deuce_fault;

/// Says whether a plan can be made from this config, by the same code that makes it.
/// Errors: the first rule that the config breaks. Thread-safe; may look up the device; not for use
/// during graph capture.
DEUCE_API deuce_status deuce_decode_check(const deuce_decode_config* config);

/// Bytes of workspace that a run of this config needs, alignment 256. Depends on the config and the
/// device only, never on live lengths or pointers: exactly this size works, one byte less is
/// refused. `control_bytes` (may be NULL) gets the size of the leading part that
/// DEUCE_FLAG_WORKSPACE_KEPT speaks of. Errors: as deuce_decode_check; NULL `bytes`:
/// INVALID_ARGUMENT. Thread-safe; not for use during graph capture.
DEUCE_API deuce_status deuce_decode_workspace_size(const deuce_decode_config* config, size_t* bytes,
                                                   size_t* control_bytes);

/// Zeros the control part of a workspace; needed once before runs with DEUCE_FLAG_WORKSPACE_KEPT.
/// GPU backends do it in stream order, with one memset. Errors: as deuce_decode_check;
/// a null or misaligned workspace: INVALID_ARGUMENT; WORKSPACE_TOO_SMALL. Thread-safe for distinct
/// workspaces.
DEUCE_API deuce_status deuce_decode_workspace_init(const deuce_decode_config* config,
                                                   void* workspace, size_t bytes,
                                                   deuce_stream stream);

/// Makes a plan: chooses the backend and kernel, looks up the device, allocates what a run must
/// not.
/// `*plan` is written on success only. The plan is immutable: any number of threads and streams may
/// run it at once, each with its own workspace. Errors: as deuce_decode_check; out of memory:
/// RUNTIME_ERROR. Thread-safe; not for use during graph capture.
DEUCE_API deuce_status deuce_decode_plan_create(const deuce_decode_config* config,
                                                deuce_decode_plan* plan);

/// Computes attention for one step. Allocates nothing, synchronises nothing, creates no stream; one
/// launch on `stream` for GPU backends (capturable in a CUDA graph), finished on return for host
/// backends. The workspace may hold any bytes (see DEUCE_FLAG_WORKSPACE_KEPT), must have
/// deuce_decode_workspace_size bytes at alignment 256 and must not be shared by runs that overlap
/// in time. Everything that the host can see is checked before anything is written or launched.
/// Errors: INVALID_ARGUMENT, UNSUPPORTED, WORKSPACE_TOO_SMALL; DEVICE_FAULT once if an earlier run
/// found a fault (nothing is launched then; the next call proceeds); RUNTIME_ERROR; HAZARD.
/// Thread-safe with distinct workspaces and outputs.
DEUCE_API deuce_status deuce_decode_run(deuce_decode_plan plan, const deuce_decode_args* args,
                                        void* workspace, size_t bytes, deuce_stream stream);

/// Writes one JSON object: backend and why the others were not taken, kernel, workspace, what an
/// environment variable changed; with `args` (may be NULL) also splits per item and predicted
/// bytes.
/// `*bytes` in: room at `text`; out: bytes needed with the final NUL. `text` NULL asks for the
/// size. Too little room: WORKSPACE_TOO_SMALL, nothing written. With `args` it may copy lengths to
/// the host and wait, so never call that form during graph capture. Thread-safe.
DEUCE_API deuce_status deuce_decode_explain(deuce_decode_plan plan, const deuce_decode_args* args,
                                            char* text, size_t* bytes);

/// Copies the plan's pending fault into `fault` and clears it; code DEUCE_FAULT_NONE if there is
/// none. Never waits: a fault of a run that is still under way may be seen later, never lost. For
/// graph replays, after which nobody calls deuce_decode_run. Errors: null plan or fault, wrong
/// struct_size: INVALID_ARGUMENT. Thread-safe.
DEUCE_API deuce_status deuce_decode_fault(deuce_decode_plan plan, deuce_fault* fault);

/// Frees a plan; NULL is allowed. No run of it may be under way, and graphs that hold one of its
/// runs must not be replayed afterwards.
DEUCE_API void deuce_decode_plan_destroy(deuce_decode_plan plan);

/// A status in words, such as "invalid argument"; "unknown status" for other values. Never NULL.
DEUCE_API const char* deuce_status_string(deuce_status status);

/// The sentence of this thread's last call that returned a status: field, value and rule; "" after
/// success. Valid until the thread's next call.
DEUCE_API const char* deuce_last_error(void);

/// The field or parameter that deuce_last_error() is about, such as "kv_len", or "".
DEUCE_API const char* deuce_last_error_field(void);

/// ABI of the loaded library; equal to the caller's DEUCE_ABI_VERSION or the structs may differ.
DEUCE_API uint32_t deuce_abi_version(void);

/// Version of the loaded library, such as "0.1.0".
DEUCE_API const char* deuce_version(void);

#ifdef __cplusplus
}
#endif

#endif
