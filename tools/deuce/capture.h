// SPDX-License-Identifier: Apache-2.0
// A captured decode step: a safetensors file turned into the config and arguments of one call.
// docs/cli.md lists tensors and metadata. Shapes and types are checked here; lengths, page ids and
// everything else that deuce_decode_run checks itself is left to it.
#pragma once

#include <string>
#include <vector>

#include "meaning.h"
#include "tensor_source.h"

namespace deuce::cli {

/// A pointer field of deuce_decode_args and the host bytes behind it.
struct Input {
  std::size_t field;  // offset of the pointer in deuce_decode_args
  const void* data;
  std::size_t bytes;
};

struct Capture {
  explicit Capture(io::SafetensorsFile&& source) : file(std::move(source)) {}

  io::SafetensorsFile file;
  Owned owned;
  deuce_decode_config config;  // backend and splits are still the caller's to set
  deuce_decode_args args;      // points into file and owned; out and lse are not set
  std::vector<Input> inputs;
  int64_t tokens = 0;  // rows of q, out and lse
};

Result<Capture> read_capture(io::SafetensorsFile file, const ScalarTexts& flags);

}  // namespace deuce::cli
