// SPDX-License-Identifier: Apache-2.0
// A plan of the C interface with its workspace, as the commands use it. Errors are the library's
// own sentences.
#pragma once

#include <memory>
#include <string>

#include "device.h"

namespace deuce::cli {

/// The status of a C call with the sentence that the library keeps for it.
Status status_of(deuce_status code);

class Plan {
 public:
  /// On a device that keeps workspaces the control part is cleared here, once.
  static Result<Plan> create(deuce_decode_config config, Device& device);
  Status run(const deuce_decode_args& args) const;
  /// A fault found by the last run, if its backend reports them later.
  Status fault() const;
  /// Who computes, once an automatic choice has been made.
  Backend backend() const;
  /// JSON; with args also splits and predicted bytes.
  Result<std::string> explain(const deuce_decode_args* args) const;

 private:
  using Handle = std::unique_ptr<deuce_decode_plan_st, void (*)(deuce_decode_plan)>;
  Plan(Handle handle, Memory workspace, std::size_t bytes, deuce_stream stream)
      : handle_(std::move(handle)),
        workspace_(std::move(workspace)),
        bytes_(bytes),
        stream_(stream) {}

  Handle handle_;
  Memory workspace_;
  std::size_t bytes_;
  deuce_stream stream_;
};

}  // namespace deuce::cli
