// SPDX-License-Identifier: Apache-2.0
// The sentences of deuce_fault records and the words of deuce_status.
#include "plan/fault.h"

namespace deuce {
namespace {

const char* field_of(int32_t code) {
  switch (code) {
    case DEUCE_FAULT_KV_LEN: return "kv_len";
    case DEUCE_FAULT_PAGE_ID: return "block_table";
    case DEUCE_FAULT_Q_LEN: return "cu_q_len";
    case DEUCE_FAULT_LAST_PAGE_LEN: return "last_page_len";
    case DEUCE_FAULT_KV_START: return "kv_start";
    case DEUCE_FAULT_CACHE_ROW: return "cache_row";
    default: return "";
  }
}

const char* meaning_of(int32_t code) {
  switch (code) {
    case DEUCE_FAULT_KV_LEN: return "kv_len";
    case DEUCE_FAULT_PAGE_ID: return "page id";
    case DEUCE_FAULT_Q_LEN: return "number of rows in cu_q_len";
    case DEUCE_FAULT_LAST_PAGE_LEN: return "last_page_len";
    case DEUCE_FAULT_KV_START: return "kv_start";
    case DEUCE_FAULT_CACHE_ROW: return "cache row";
    default: return "value of an unknown fault";
  }
}

}  // namespace

Status describe_fault(const deuce_fault& fault) {
  const std::string column = fault.column >= 0 ? fmt::format(", column {}", fault.column) : "";
  return {
      DEUCE_DEVICE_FAULT, field_of(fault.code),
      fmt::format("an earlier run (tag {}) found for request {}{}: {} is {}, allowed is {} .. {}",
                  fault.tag, fault.request, column, meaning_of(fault.code), fault.value,
                  fault.lowest, fault.highest)};
}

const char* status_word(deuce_status status) {
  switch (status) {
    case DEUCE_OK: return "ok";
    case DEUCE_INVALID_ARGUMENT: return "invalid argument";
    case DEUCE_UNSUPPORTED: return "unsupported";
    case DEUCE_WORKSPACE_TOO_SMALL: return "workspace too small";
    case DEUCE_NO_DEVICE: return "no device";
    case DEUCE_DEVICE_FAULT: return "device fault";
    case DEUCE_RUNTIME_ERROR: return "runtime error";
    case DEUCE_VERSION_MISMATCH: return "version mismatch";
    case DEUCE_HAZARD: return "hazard";
    default: return "unknown status";
  }
}

}  // namespace deuce
