// SPDX-License-Identifier: Apache-2.0
// Collects findings; see finding.h.
#include "emulator/finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace deuce::emulator {
namespace {

/// Lines joined by semicolons, runs of blanks made one.
std::string in_one_line(const std::string& text) {
  std::string line;
  bool gap = false, next_line = false;
  for (const char c : text) {
    if (c == ' ' || c == '\n') {
      gap = true;
      next_line = next_line || c == '\n';
      continue;
    }
    if (gap && !line.empty()) line += next_line ? "; " : " ";
    gap = next_line = false;
    line += c;
  }
  return line;
}

}  // namespace

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::note: return "note";
    case Severity::review: return "review";
    case Severity::error: break;
  }
  return "error";
}

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::clean: return "clean";
    case Verdict::review: return "review";
    case Verdict::incomplete: return "incomplete";
    case Verdict::error: break;
  }
  return "error";
}

void Report::add(Finding finding) {
  for (Finding& known : findings_) {
    if (known.check == finding.check && known.text == finding.text) {
      known.count += finding.count;
      return;
    }
  }
  if (finding.severity == Severity::error) ++errors_;
  findings_.push_back(std::move(finding));
}

void Report::merge(const Report& other) {
  for (const Finding& finding : other.findings_) add(finding);
  if (incomplete_.empty()) incomplete_ = other.incomplete_;
}

bool Report::has(const std::string& check) const {
  return std::any_of(findings_.begin(), findings_.end(),
                     [&](const Finding& finding) { return finding.check == check; });
}

void Report::mark_incomplete(std::string reason) {
  if (incomplete_.empty()) incomplete_ = std::move(reason);
}

Verdict Report::verdict() const {
  if (errors_ > 0) return Verdict::error;
  if (!incomplete_.empty()) return Verdict::incomplete;
  for (const Finding& finding : findings_) {
    if (finding.severity == Severity::review) return Verdict::review;
  }
  return Verdict::clean;
}

std::string Report::sentence() const {
  const Severity wanted = errors_ > 0 ? Severity::error : Severity::review;
  const auto found = std::find_if(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.severity == wanted;
  });
  if (errors_ == 0 && !incomplete_.empty()) return "incomplete: " + incomplete_;
  return found == findings_.end() ? "" : found->check + ": " + in_one_line(found->text);
}

std::string Report::text() const {
  std::string out;
  for (const Severity severity : {Severity::error, Severity::review, Severity::note}) {
    for (const Finding& finding : findings_) {
      if (finding.severity != severity) continue;
      out += fmt::format("{} {}  {}", name_of(finding.severity), finding.check, finding.text);
      if (finding.count > 1) out += fmt::format("\n  found {} times", finding.count);
      out += '\n';
    }
  }
  if (!incomplete_.empty()) out += fmt::format("incomplete: {}\n", incomplete_);
  return out;
}

}  // namespace deuce::emulator
