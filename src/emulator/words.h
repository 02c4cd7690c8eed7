// SPDX-License-Identifier: Apache-2.0
// Words for operations and source files in findings.
#pragma once

#include <cstring>

#include "emulator/op.h"

namespace deuce::emulator {

inline const char* mnemonic(OpKind kind) {
  switch (kind) {
    case OpKind::load_shared: return "shared load";
    case OpKind::store_shared: return "shared store";
    case OpKind::load_matrices: return "ldmatrix";
    case OpKind::mma_sync: return "mma.sync";
    case OpKind::copy_tensor: return "tensor copy to";
    case OpKind::copy_bulk: return "bulk copy to";
    case OpKind::tensor_load: return "tcgen05.ld of";
    case OpKind::tensor_store: return "tcgen05.st to";
    case OpKind::mma_shared:
    case OpKind::mma_tensor: return "tcgen05.mma";
    case OpKind::tensor_alloc: return "tcgen05.alloc";
    case OpKind::wait: return "wait";
    case OpKind::sync_named: return "named barrier";
    case OpKind::sync_block: return "block barrier";
    case OpKind::registers: return "setmaxnreg";
    default: return "operation";
  }
}

inline const char* file_name(const char* path) {
  const char* kernel = std::strstr(path, "kernel/");
  return kernel != nullptr ? kernel + std::strlen("kernel/") : path;
}

}  // namespace deuce::emulator
