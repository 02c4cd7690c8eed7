// SPDX-License-Identifier: Apache-2.0
// Options of CLI11 whose numbers are read by numbers.h. Only files that define a command line
// include this: the parser's header is by far the largest one here.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <string>

#include "numbers.h"

namespace deuce::cli {

/// An option whose text is handed to `read`; a refusal becomes CLI11's error of that option.
template <class Read>
CLI::Option* text_option(CLI::App& app, const std::string& flags, const std::string& value_name,
                         const std::string& help, Read read) {
  const std::function<void(const std::string&)> take = [flags, read](const std::string& text) {
    const Status status = read(text);
    if (!status.ok()) throw CLI::ValidationError(flags, status.sentence());
  };
  return app.add_option_function<std::string>(flags, take, help)->type_name(value_name);
}

template <class Int>
CLI::Option* integer_option(CLI::App& app, const std::string& flags, Int& target, int64_t lowest,
                            const std::string& help,
                            int64_t highest = std::numeric_limits<Int>::max()) {
  return text_option(app, flags, "N", help, [&target, lowest, highest](const std::string& text) {
    const Result<int64_t> number = parse_integer(text, lowest, highest);
    if (number.ok()) target = static_cast<Int>(number.value());
    return number.status();
  });
}

}  // namespace deuce::cli
