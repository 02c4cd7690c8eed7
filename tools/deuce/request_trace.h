// SPDX-License-Identifier: Apache-2.0
// Decode batches out of a trace of requests: Mooncake's JSON lines or the Azure LLM inference CSV.
// A closed loop of continuous batching: the batch is always full, the next request of the file
// enters as soon as one leaves, and three moments of it are the cases.
#pragma once

#include <string>
#include <vector>

#include "lengths.h"

namespace deuce::cli {

/// Tokens of one request.
struct TraceRequest {
  int64_t input = 0, output = 0;
};

/// What the files of requests look like, for a sentence about one that is neither.
inline constexpr const char* kRequestForms =
    "JSON lines with input_length and output_length, or a CSV with the header "
    "TIMESTAMP,ContextTokens,GeneratedTokens";

/// Whether the text is one of the two formats, by its first line.
bool is_request_trace(std::string_view text);

/// Requests in file order; a bad line is named by its number.
Result<std::vector<TraceRequest>> parse_request_trace(const std::string& path,
                                                      std::string_view text);

/// Snapshots at 1/6, 1/2 and 5/6 of the steps in which the batch is full and its first requests
/// have left; named stem of `path`/b<batch>/s<step>, step 1 being the first. kv_len includes the
/// token that is decoded. Requests of fewer than two output tokens never decode and are left out,
/// as those of no input are. INVALID when the trace is too short for the batch.
Result<std::vector<LengthCase>> decode_batches(const std::string& path,
                                               const std::vector<TraceRequest>& requests,
                                               int batch);

}  // namespace deuce::cli
