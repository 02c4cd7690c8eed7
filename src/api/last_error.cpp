// SPDX-License-Identifier: Apache-2.0
// Thread-local storage of the last sentence.
// The success path touches two pointers only: no allocation, no registration of a destructor.
#include "api/last_error.h"

#include <memory>

namespace deuce {
namespace {

struct Record {
  std::string sentence, field;
};

// Not initial-exec: the CUDA runtime in the same library has a page of thread-local storage, and a
// library of that size that insists on the static TLS block cannot be loaded by dlopen. nullptr =
// no error.
thread_local const char* t_sentence = nullptr;
thread_local const char* t_field = nullptr;

// Created at a thread's first error; freed when the thread ends.
Record& thread_record() {
  thread_local std::unique_ptr<Record> record;
  if (!record) record = std::make_unique<Record>();
  return *record;
}

}  // namespace

deuce_status report(const Status& status) noexcept {
  t_sentence = t_field = nullptr;
  if (status.ok()) return DEUCE_OK;
  try {
    Record& record = thread_record();
    record.sentence = status.sentence();
    record.field = status.field();
    t_sentence = record.sentence.c_str();
    t_field = record.field.c_str();
  } catch (...) {
    t_sentence = "the call failed and there was no memory for its sentence";
  }
  return status.code();
}

deuce_status report_out_of_memory() noexcept {
  t_sentence = "out of host memory";
  t_field = nullptr;
  return DEUCE_RUNTIME_ERROR;
}

const char* last_sentence() noexcept { return t_sentence != nullptr ? t_sentence : ""; }
const char* last_field() noexcept { return t_field != nullptr ? t_field : ""; }

}  // namespace deuce
