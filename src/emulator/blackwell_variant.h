// SPDX-License-Identifier: Apache-2.0
// Makes the description and the entry of one Blackwell configuration; included by the files that
// instantiate the kernel.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "emulator/blackwell_variants.h"
#include "emulator/machine.h"
#include "kernel/blackwell/kernel.h"

namespace deuce::emulator {

template <blackwell::Config kConfig>
KernelSpec blackwell_kernel_spec() {
  using Storage = blackwell::SharedStorage<kConfig>;
  using Columns = blackwell::TensorColumns<kConfig>;
  KernelSpec spec;
  spec.name = fmt::format("blackwell hd{} slots {} replicas {} {}", kConfig.head_dim,
                          kConfig.score_slots, kConfig.row_replicas, kConfig.bf16 ? "bf16" : "f16");
  spec.threads = blackwell::kThreads;
  spec.shared_bytes = sizeof(Storage);
  spec.roles.assign(blackwell::kRoles<kConfig>.begin(), blackwell::kRoles<kConfig>.end());
  spec.edges.assign(blackwell::kEdges<kConfig>.begin(), blackwell::kEdges<kConfig>.end());
  spec.uniform_roles = {Role::mma, Role::softmax, Role::correction};
  spec.shared_ranges = {
      {"Q tile", offsetof(Storage, q), kConfig.tile_bytes(), blackwell::Config::kQueryStages, false,
       "q_arrived, q_released"},
      {"K/V tile", offsetof(Storage, kv), kConfig.tile_bytes(), kConfig.ring_slots(), false,
       "kv_arrived, kv_released"},
      {"row scale", offsetof(Storage, row_scale), sizeof(Storage::row_scale), 1, false,
       "stats_ready, stats_taken"},
      {"row max", offsetof(Storage, row_max), sizeof(Storage::row_max), 1, false,
       "stats_ready, stats_taken"},
      {"piece", offsetof(Storage, pieces), sizeof(blackwell::PieceRecord), blackwell::kPieceSlots,
       false, "piece_ready, piece_taken"},
      {"total tiles", offsetof(Storage, total_tiles), 8, 1},
      {"tensor-memory address", offsetof(Storage, tensor_memory), 16, 1},
      {"last arriver", offsetof(Storage, last_arriver), 16, 1},
      {"merge stack", offsetof(Storage, merge_stack), sizeof(Storage::merge_stack), 1}};
  spec.tensor_ranges = {{"S/P slot", 0, Columns::kPerSlot, kConfig.score_slots, false,
                         "s_ready, po_ready, p_tail_ready"},
                        {"O", Columns::kOutput, kConfig.head_dim, 1, false, "po_ready, o_ready"}};
  return spec;
}

template <blackwell::Config kConfig>
BlackwellVariant blackwell_variant() {
  return {kConfig, blackwell_kernel_spec<kConfig>(),
          [](Machine& machine, const blackwell::Params& params) {
            blackwell::decode_kernel<kConfig>(machine, params);
          }};
}

/// 1, 2 and 3 score slots of one type and number of replicas.
template <int kHeadDim, bool kBf16, int kReplicas>
void add_replicated(std::vector<BlackwellVariant>& list) {
  [&]<int... kSlots>(std::integer_sequence<int, kSlots...>) {
    (list.push_back(blackwell_variant<blackwell::Config{.head_dim = kHeadDim,
                                                        .score_slots = kSlots + 1,
                                                        .bf16 = kBf16,
                                                        .row_replicas = kReplicas}>()),
     ...);
  }
  (std::make_integer_sequence<int, 3>{});
}

/// Head dimension 64 with K/V rings of 2 to 6 tiles and 1, 2 and 3 score slots.
template <int kReplicas>
std::vector<BlackwellVariant> ring_variants() {
  constexpr int kRings = kMostTiles - kFewestTiles + 1;
  std::vector<BlackwellVariant> list;
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    (list.push_back(blackwell_variant<blackwell::Config{.score_slots = 1 + kIndex / kRings,
                                                        .kv_slots = kFewestTiles + kIndex % kRings,
                                                        .row_replicas = kReplicas}>()),
     ...);
  }
  (std::make_integer_sequence<int, 3 * kRings>{});
  return list;
}

/// Head dimension 64 that waits for PV before QK reuses its slot: 2 and 3 score slots.
template <int kReplicas>
void add_strict_order(std::vector<BlackwellVariant>& list) {
  using blackwell::Config;
  list.push_back(blackwell_variant<Config{
                     .score_slots = 2, .strict_order = true, .row_replicas = kReplicas}>());
  list.push_back(blackwell_variant<Config{
                     .score_slots = 3, .strict_order = true, .row_replicas = kReplicas}>());
}

/// Every configuration with row replicas at one head dimension.
template <int kHeadDim>
std::vector<BlackwellVariant> replicated_variants() {
  std::vector<BlackwellVariant> list;
  add_replicated<kHeadDim, true, 2>(list);
  add_replicated<kHeadDim, true, 4>(list);
  add_replicated<kHeadDim, false, 2>(list);
  add_replicated<kHeadDim, false, 4>(list);
  return list;
}

}  // namespace deuce::emulator
