// SPDX-License-Identifier: Apache-2.0
// A C11 program that uses the installed interface only: sizes and offsets as other languages count
// on them, and one whole call. Compiled with -pedantic and -Wpadded, warnings as errors.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "deuce/deuce.h"

_Static_assert(sizeof(deuce_decode_config) == 128, "size of deuce_decode_config");
_Static_assert(sizeof(deuce_decode_args) == 456, "size of deuce_decode_args");
_Static_assert(sizeof(deuce_fault) == 48, "size of deuce_fault");
_Static_assert(sizeof(deuce_status) == 4, "size of deuce_status");
_Static_assert(offsetof(deuce_decode_config, max_kv_len) == 72, "offset of max_kv_len");
_Static_assert(offsetof(deuce_decode_config, emulator_seed) == 120, "offset of emulator_seed");
_Static_assert(offsetof(deuce_decode_args, q) == 16, "offset of q");
_Static_assert(offsetof(deuce_decode_args, kv_len) == 184, "offset of kv_len");
_Static_assert(offsetof(deuce_decode_args, trace_bytes) == 448, "offset of trace_bytes");

enum { HEADS = 4, DIM = 16, SLOTS = 10, KEYS = 7 };

static void require(deuce_status status, const char* what) {
  if (status == DEUCE_OK) return;
  fprintf(stderr, "%s: %s (%s, field '%s')\n", what, deuce_last_error(),
          deuce_status_string(status), deuce_last_error_field());
  exit(1);
}

int main(void) {
  deuce_decode_config config;
  deuce_decode_config_init(&config);
  config.num_q_heads = config.num_kv_heads = HEADS;
  config.head_dim_qk = config.head_dim_v = DIM;
  config.q_dtype = config.kv_dtype = DEUCE_F32;
  config.max_batch = config.max_q_len = 1;
  config.max_kv_len = SLOTS;

  size_t bytes = 0;
  deuce_decode_plan plan = NULL;
  require(deuce_decode_workspace_size(&config, &bytes, NULL), "workspace_size");
  require(deuce_decode_plan_create(&config, &plan), "plan_create");
  void* workspace = aligned_alloc(256, (bytes + 255) / 256 * 256);

  static float q[HEADS * DIM], k[SLOTS * HEADS * DIM], v[SLOTS * HEADS * DIM], out[HEADS * DIM],
      lse[HEADS];
  for (int i = 0; i < SLOTS * HEADS * DIM; ++i) v[i] = i < KEYS * HEADS * DIM ? 2.0f : -99.0f;
  deuce_decode_args args;
  deuce_decode_args_init(&args);
  args.batch = args.q_len = args.num_pages = 1;
  args.q = q;
  args.k = k;
  args.v = v;
  args.out = out;
  args.lse = lse;
  args.cache_slots = SLOTS;
  args.kv_len_all = KEYS;
  args.q_stride[2] = args.out_stride[2] = args.k_stride[2] = args.v_stride[2] = DIM;
  args.lse_stride[2] = 1;
  args.k_stride[1] = args.v_stride[1] = (int64_t)HEADS * DIM;
  require(deuce_decode_run(plan, &args, workspace, bytes, NULL), "run");

  int wrong = 0;  // q is zero: all weights are equal, and lse is the log of their number
  for (int i = 0; i < HEADS * DIM; ++i) wrong += fabsf(out[i] - 2.0f) > 1e-5f;
  for (int h = 0; h < HEADS; ++h) wrong += fabsf(lse[h] - logf(KEYS)) > 1e-5f;
  deuce_decode_plan_destroy(plan);
  free(workspace);
  if (wrong != 0) fprintf(stderr, "%d values are wrong\n", wrong);
  return wrong != 0;
}
