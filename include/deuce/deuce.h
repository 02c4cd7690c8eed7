/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEUCE_DEUCE_H
#define DEUCE_DEUCE_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct CUstream_st *deuce_stream;              /* accepts cudaStream_t; NULL = legacy default stream; host backends ignore it */
typedef struct deuce_decode_plan_st *deuce_decode_plan;

typedef int32_t deuce_status;
enum { DEUCE_OK = 0, DEUCE_INVALID_ARGUMENT = 1, DEUCE_UNSUPPORTED = 2, DEUCE_WORKSPACE_TOO_SMALL = 3, DEUCE_NO_DEVICE = 4,
       DEUCE_DEVICE_FAULT = 5, DEUCE_RUNTIME_ERROR = 6, DEUCE_VERSION_MISMATCH = 7, DEUCE_HAZARD = 8 };
enum { DEUCE_BACKEND_AUTO = 0, DEUCE_BACKEND_CPU = 1, DEUCE_BACKEND_HOPPER = 2, DEUCE_BACKEND_BLACKWELL = 3,
       DEUCE_BACKEND_EMULATOR = 4, DEUCE_BACKEND_REFERENCE = 5 };
enum { DEUCE_F32 = 1, DEUCE_F16 = 2, DEUCE_BF16 = 3, DEUCE_E4M3 = 4, DEUCE_E5M2 = 5 };   /* DLPack code/bits: 2/32 2/16 4/16 10/8 12/8 */
enum { DEUCE_FLAG_TRACE = 1, DEUCE_FLAG_WORKSPACE_KEPT = 2, DEUCE_FLAG_PDL = 4 };   /* PDL: section 4 */

typedef struct deuce_decode_config {                   /* what does not change from step to step */
  uint32_t struct_size, flags;
  int32_t  backend;                                    /* DEUCE_BACKEND_* */
  int32_t  emulated_backend;                           /* EMULATOR only: HOPPER or BLACKWELL; 0 = BLACKWELL */
  int32_t  device_type, device_id;                     /* DLPack values, 1 CPU, 2 CUDA; type 0 = implied by backend; id -1 = current */
  int32_t  num_q_heads, num_kv_heads;
  int32_t  head_dim_qk, head_dim_v;
  int32_t  q_dtype, kv_dtype, out_dtype, sink_dtype;   /* out 0 = as q (bf16 for fp8 q); sink 0 = F32 */
  int32_t  page_size;                                  /* tokens; 0 = contiguous cache */
  int32_t  max_batch, max_q_len;                       /* bounds for workspace and for replay of a captured graph */
  int32_t  causal;
  int64_t  max_kv_len;
  int32_t  window_left, window_right;                  /* -1 = open */
  float    softmax_scale, softcap;                     /* 0 = 1/sqrt(head_dim_qk); 0 = off */
  int32_t  lse_base;                                   /* 0 = natural, 2 = base 2 */
  int32_t  num_splits, split_kv_len;                   /* section 1.2; split_kv_len > 0 = batch-invariant */
  int32_t  score_slots;                                /* 0 = choose, 1 = base, 2 = ping-pong, 3 where tensor memory has room; same bits */
  int32_t  sm_margin;                                  /* SMs (cpu: threads) left to others */
  int32_t  row_replicas;                               /* blackwell: 0 = choose, 1, 2, 4 copies of the rows in the lane quarters (blackwell-decode.md section 2) */
  uint64_t emulator_seed;                              /* EMULATOR only: schedule to run */
} deuce_decode_config;

static inline void deuce_decode_config_init(deuce_decode_config *config) {
  memset(config, 0, sizeof *config);
  config->struct_size = (uint32_t)sizeof *config;
  config->device_id = config->window_left = config->window_right = -1;
}

typedef struct deuce_decode_args {                     /* what changes: pointers, strides in elements, this step's sizes */
  uint32_t struct_size;
  uint32_t tag;                                        /* caller's mark (layer, step): copied into fault record and trace */
  int32_t  batch, q_len;                               /* rows a request; with cu_q_len the longest */
  const void *q, *k, *v;
  void    *out;
  float   *lse;                                        /* NULL = not wanted */
  int64_t  q_stride[3], out_stride[3], lse_stride[3];  /* request, row, head */
  int64_t  k_stride[3], v_stride[3];                   /* page or cache row, slot, head */
  const int32_t *cu_q_len;                             /* [batch + 1], or NULL: q_len rows each */
  const int32_t *kv_len, *kv_start;                    /* [batch]; kv_len NULL = kv_len_all; kv_start NULL = 0 */
  int64_t  kv_len_all;
  int64_t  cache_slots;                                /* contiguous cache: slots in a cache row */
  const int32_t *cache_row;                            /* contiguous cache: [batch] row of each request, or NULL = identity */
  const int32_t *block_table;                          /* [batch, block_table_columns] page ids */
  int64_t  block_table_stride;
  int32_t  block_table_columns;
  int32_t  num_pages;                                  /* pages in the pool, or rows of a contiguous cache */
  const int32_t *page_indptr, *page_indices, *last_page_len;   /* the other page-table style: [batch + 1], [indptr[batch]], [batch] */
  const void  *sink;                                   /* [num_q_heads], sink_dtype, contiguous, or NULL */
  const float *q_descale, *k_descale, *v_descale;      /* [batch, num_kv_heads] or NULL = 1 */
  int64_t  q_descale_stride[2], k_descale_stride[2], v_descale_stride[2];
  const float *k_token_scale, *v_token_scale;          /* per cache slot and KV head, or NULL = 1 */
  int64_t  k_token_scale_stride[3], v_token_scale_stride[3];   /* as k_stride, v_stride */
  float    score_scale, out_scale;                     /* host factors, 0 = 1; fixed in a captured graph */
  const uint64_t *tree_mask;                           /* reserved: must be NULL */
  int64_t  tree_mask_stride;
  void    *trace;                                      /* DEUCE_FLAG_TRACE only */
  size_t   trace_bytes;
} deuce_decode_args;

enum { DEUCE_FAULT_NONE = 0, DEUCE_FAULT_KV_LEN = 1, DEUCE_FAULT_PAGE_ID = 2, DEUCE_FAULT_Q_LEN = 3, DEUCE_FAULT_LAST_PAGE_LEN = 4,
       DEUCE_FAULT_KV_START = 5, DEUCE_FAULT_CACHE_ROW = 6 };
typedef struct deuce_fault {
  uint32_t struct_size;
  int32_t  code;
  int32_t  request, column;                            /* column of the page table, or -1 */
  int64_t  value, lowest, highest;                     /* what was found, what was allowed */
  uint32_t tag, reserved;
} deuce_fault;

#ifdef __cplusplus
extern "C" {
#endif

#define DEUCE_API __attribute__((visibility("default")))
DEUCE_API deuce_status deuce_decode_check(const deuce_decode_config *config);                        /* is it supported? the same code as plan_create */
DEUCE_API deuce_status deuce_decode_workspace_size(const deuce_decode_config *config, size_t *bytes, size_t *control_bytes);
DEUCE_API deuce_status deuce_decode_workspace_init(const deuce_decode_config *config, void *workspace, size_t bytes, deuce_stream stream);
DEUCE_API deuce_status deuce_decode_plan_create(const deuce_decode_config *config, deuce_decode_plan *plan);
DEUCE_API deuce_status deuce_decode_run(deuce_decode_plan plan, const deuce_decode_args *args, void *workspace, size_t bytes, deuce_stream stream);
DEUCE_API deuce_status deuce_decode_explain(deuce_decode_plan plan, const deuce_decode_args *args, char *text, size_t *bytes);
DEUCE_API deuce_status deuce_decode_fault(deuce_decode_plan plan, deuce_fault *fault);               /* looks and clears; never waits */
DEUCE_API void         deuce_decode_plan_destroy(deuce_decode_plan plan);
DEUCE_API const char  *deuce_status_string(deuce_status status);
DEUCE_API const char  *deuce_last_error(void);                   /* thread-local sentence */
DEUCE_API const char  *deuce_last_error_field(void);             /* the field it names, or "" */
DEUCE_API uint32_t     deuce_abi_version(void);
DEUCE_API const char  *deuce_version(void);

#ifdef __cplusplus
}
#endif

#endif
