// SPDX-License-Identifier: Apache-2.0
// Reads a caller's struct of any age into one of this library's size.
// A shorter struct reads as zeros beyond its end; the unknown tail of a longer one must be zero.
#pragma once

#include "deuce/deuce.h"
#include "plan/status.h"

namespace deuce {

Status read_config(const deuce_decode_config* from, deuce_decode_config& to);
Status read_args(const deuce_decode_args* from, deuce_decode_args& to);

/// Whether write_fault() may write to it. Asked before a pending fault is taken.
Status check_fault(const deuce_fault* to);
/// Writes as much of `fault` as the caller's struct has room for; its struct_size stays.
void write_fault(const deuce_fault& fault, deuce_fault& to);

}  // namespace deuce
