// SPDX-License-Identifier: Apache-2.0
// Findings and verdicts: what the checker says, in the words of the kernel.
// Filled by block, shadow and grid; read by tests, the backend and `deuce check`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace deuce::emulator {

enum class Severity : uint8_t { note, review, error };
enum class Verdict : uint8_t { clean, review, incomplete, error };

struct Finding {
  std::string check;  // "H2", "deadlock": the names of docs/emulator.md
  Severity severity;
  std::string edge;    // edge or resource it is about, of a deadlock all edges of its cycle
  std::string text;    // one or more lines
  uint64_t count = 1;  // how often the same thing was found
};

/// Everything one or several runs have found; equal findings are counted, not repeated.
class Report {
 public:
  void add(Finding finding);
  void merge(const Report& other);
  bool has_error() const { return errors_ > 0; }
  bool has(const std::string& check) const;
  /// A budget ended or a shadow record was lost: not clean, whatever else was found.
  void mark_incomplete(std::string reason);
  Verdict verdict() const;
  const std::vector<Finding>& findings() const { return findings_; }
  const std::string& incomplete_reason() const { return incomplete_; }
  /// All of them, the gravest first.
  std::string text() const;
  /// The first finding that decides the verdict, in one line: for statuses of the public API.
  std::string sentence() const;

 private:
  std::vector<Finding> findings_;
  std::string incomplete_;
  int errors_ = 0;
};

const char* name_of(Severity severity);
const char* name_of(Verdict verdict);

}  // namespace deuce::emulator
