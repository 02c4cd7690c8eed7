// SPDX-License-Identifier: Apache-2.0
// How --help reads: what it does, how to call it, the options, then the long explanations.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace deuce::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(26);
    label("SUBCOMMAND", "COMMAND");
  }

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return make_expanded(app);
    std::string text = app->get_description() + "\n\n" + make_usage(app, name) +
                       make_positionals(app) + make_groups(app, mode) +
                       make_subcommands(app, mode) + "\n" + make_footer(app);
    for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n", at)) {
      text.erase(at, 1);
    }
    if (const auto at = text.find("Subcommands:"); at != std::string::npos)
      text.replace(at, 11, "Commands");
    while (text.ends_with("\n\n")) text.pop_back();
    return text;
  }

  /// The value's name only; what excludes what is said in the option's text.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string value = option->get_type_name();
    return value.empty() ? "" : " " + value;
  }
};

}  // namespace deuce::cli
