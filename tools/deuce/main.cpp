// SPDX-License-Identifier: Apache-2.0
// The command line tool `deuce`: one file per subcommand, this one only joins them.
// Whatever goes wrong ends as one sentence on stderr and an exit code of exit_code.h.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "command.h"
#include "help.h"

namespace deuce::cli {
namespace {

std::string footer() {
  std::string text = "Exit codes:";
  for (const ExitCodeRow& row : kExitCodes) {
    text += fmt::format("\n  {:>3}  {}", static_cast<int>(row.code), row.meaning);
  }
  return text + "\n\ndeuce COMMAND --help tells more about a command.";
}

/// No option has a use for an empty text, which a script passes where a variable is not set.
void refuse_empty_texts(CLI::App& app) {
  const auto refuse = [](const std::string& text) {
    return std::string(text.empty() ? "the text is empty" : "");
  };
  for (CLI::Option* option : app.get_options({})) {
    if (option->get_items_expected_max() > 0) option->check(refuse, "");
  }
  for (CLI::App* command : app.get_subcommands({})) refuse_empty_texts(*command);
}

void build(CLI::App& app, Action& action) {
  app.description("Deuce: attention of new tokens against a long KV cache.");
  app.set_version_flag("--version", std::string("deuce ") + deuce_version());
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<HelpFormatter>());
  add_run(app, action);
  add_bench(app, action);
#ifdef DEUCE_HAS_EMULATOR
  add_check(app, action);
  add_trace(app, action);
#endif
  add_info(app, action);
  refuse_empty_texts(app);
  app.footer(footer());  // last, since a subcommand inherits what its parent has by then
}

/// The subcommand that the arguments reached, for the start of an error line.
std::string reached(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) name += " " + reached(*command);
  return name;
}

int complain(const std::string& who, const std::string& sentence, ExitCode code) {
  std::fputs(fmt::format("{}: {}\n", who, sentence).c_str(), stderr);
  return static_cast<int>(code);
}

int run(int count, char** arguments) {
  CLI::App app;
  app.name("deuce");
  Action action;
  build(app, action);
  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);  // --help or --version
  } catch (const CLI::ParseError& error) {
    const std::string who = reached(app);
    return complain(who, fmt::format("{} ({} --help)", error.what(), who), ExitCode::bad_input);
  }
  if (!action)
    return complain("deuce", "a command is needed: run, bench, check, trace or info (deuce --help)",
                    ExitCode::bad_input);
  const Result<ExitCode> result = action();
  if (result.ok()) return static_cast<int>(result.value());
  const Status status = result.status();
  return complain(reached(app), status.sentence(), exit_code_of(status.code()));
}

}  // namespace
}  // namespace deuce::cli

int main(int count, char** arguments) {
  using deuce::cli::ExitCode;
  try {
    const int code = deuce::cli::run(count, arguments);
    // A full disk or a closed pipe behind stdout must not look like success.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    return deuce::cli::complain("deuce", "standard output cannot be written", ExitCode::run_failed);
  } catch (const std::bad_alloc&) {
    return deuce::cli::complain("deuce", "out of memory", ExitCode::run_failed);
  } catch (const std::exception& error) {
    return deuce::cli::complain("deuce", error.what(), ExitCode::run_failed);
  }
}
