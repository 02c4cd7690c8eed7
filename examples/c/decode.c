// SPDX-License-Identifier: Apache-2.0
// Smallest use of the C interface: two requests of different length, one new token each, against a
// contiguous fp32 cache. Every key is zero, so all weights are equal and the answer is known: the
// mean of the values and LSE = ln(kv_len). Build: cc decode.c $(pkg-config --cflags --libs deuce)
// -lm
#include <deuce/deuce.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kBatch = 2, kSlots = 64, kQueryHeads = 4, kKvHeads = 2, kHeadDim = 64 };

static float q[kBatch][kQueryHeads][kHeadDim], out[kBatch][kQueryHeads][kHeadDim];
static float k[kBatch][kSlots][kKvHeads][kHeadDim], v[kBatch][kSlots][kKvHeads][kHeadDim];
static float lse[kBatch][kQueryHeads];
static const int32_t kv_len[kBatch] = {5, 64};

static int failed(deuce_status status) {
  if (status != DEUCE_OK)
    fprintf(stderr, "%s: %s\n", deuce_status_string(status), deuce_last_error());
  return status != DEUCE_OK;
}

int main(void) {
  for (int b = 0; b < kBatch; ++b)
    for (int slot = 0; slot < kSlots; ++slot)
      for (int i = 0; i < kKvHeads * kHeadDim; ++i)
        v[b][slot][i / kHeadDim][i % kHeadDim] = (float)slot;

  deuce_decode_config config;  // what stays from step to step
  deuce_decode_config_init(&config);
  config.num_q_heads = kQueryHeads, config.num_kv_heads = kKvHeads;
  config.head_dim_qk = config.head_dim_v = kHeadDim;
  config.q_dtype = config.kv_dtype = DEUCE_F32;
  config.max_batch = kBatch, config.max_q_len = 1, config.max_kv_len = kSlots;
  size_t bytes = 0, control_bytes = 0;
  deuce_decode_plan plan = NULL;
  if (failed(deuce_decode_workspace_size(&config, &bytes, &control_bytes))) return 1;
  if (failed(deuce_decode_plan_create(&config, &plan))) return 1;
  void* workspace = aligned_alloc(256, (bytes + 511) / 256 * 256);

  deuce_decode_args args;  // what changes: pointers, strides in elements, lengths
  deuce_decode_args_init(&args);
  args.batch = kBatch, args.q_len = 1;
  args.q = q, args.k = k, args.v = v, args.out = out, args.lse = &lse[0][0];
  args.q_stride[0] = args.out_stride[0] = kQueryHeads * kHeadDim;  // request
  args.q_stride[1] = args.out_stride[1] = kQueryHeads * kHeadDim;  // row
  args.q_stride[2] = args.out_stride[2] = kHeadDim;                // head
  args.lse_stride[0] = args.lse_stride[1] = kQueryHeads, args.lse_stride[2] = 1;
  args.k_stride[0] = args.v_stride[0] = kSlots * kKvHeads * kHeadDim;  // cache row
  args.k_stride[1] = args.v_stride[1] = kKvHeads * kHeadDim;           // slot
  args.k_stride[2] = args.v_stride[2] = kHeadDim;                      // KV head
  args.kv_len = kv_len, args.num_pages = kBatch, args.cache_slots = kSlots;
  int wrong = failed(deuce_decode_run(plan, &args, workspace, bytes, NULL));

  for (int b = 0; b < kBatch; ++b) {
    const double mean = (kv_len[b] - 1) / 2.0;
    printf("request %d, %2d keys: out %.4f (mean of the values %.4f), lse %.4f\n", b, kv_len[b],
           out[b][3][0], mean, lse[b][3]);
    wrong |=
        fabs((double)out[b][3][0] - mean) > 1e-5 || fabs((double)lse[b][3] - log(kv_len[b])) > 1e-6;
  }
  deuce_decode_plan_destroy(plan);
  free(workspace);
  return wrong;
}
