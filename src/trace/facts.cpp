// SPDX-License-Identifier: Apache-2.0
// Facts of a run as JSON text; see facts.h.
#include "trace/facts.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

namespace deuce::trace {
namespace {

using nlohmann::json;
using Words = std::initializer_list<std::string_view>;

constexpr std::size_t kLongestText = 1000;

/// Every fact with its name and what it can be, for reading and for writing.
template <class AnyFacts, class Visit>
void visit_facts(AnyFacts& facts, Visit& visit) {
  visit.text("label", facts.label);
  visit.word("kernel", facts.kernel, {"blackwell", "hopper"});
  visit.text("problem", facts.problem);
  visit.text("chip", facts.chip);
  visit.flag("simulated", facts.simulated);
  visit.number("clock_hz", facts.clock_hz, 1e6, 1e11);
  visit.level("level", facts.level);
  visit.integer("head_dim", facts.head_dim, 1, 1024);
  visit.integer("rows", facts.rows, 1, 1 << 20);
  visit.integer("score_slots", facts.score_slots, 1, 31);
  visit.integer("row_replicas", facts.row_replicas, 1, 32);
  visit.integer("kv_block", facts.kv_block, 1, 4096);
  visit.integer("element_bytes", facts.element_bytes, 1, 4);
  visit.seed("seed", facts.seed);
  visit.word("costs", facts.costs, {"", "low", "best", "high"});
  visit.number("cycles", facts.cycles, 0, kMostCycles);
  visit.number("untraced_cycles", facts.untraced_cycles, 0, kMostCycles);
  visit.number("self_cost_cycles", facts.self_cost, 0, kMostCycles);
  visit.number("timer_step_ns", facts.timer_step_ns, 0, 1e9);
  visit.note("commit", facts.commit);
  visit.note("driver", facts.driver);
  visit.note("recorded", facts.recorded);
}

class Writer {
 public:
  void text(const char* name, const std::string& value) { json_[name] = value; }
  void note(const char* name, const std::string& value) { json_[name] = value; }
  void word(const char* name, const std::string& value, Words) { json_[name] = value; }
  void flag(const char* name, bool value) { json_[name] = value; }
  void seed(const char* name, uint64_t value) { json_[name] = value; }
  void number(const char* name, double value, double, double) { json_[name] = value; }
  void integer(const char* name, int value, int, int) { json_[name] = value; }
  void level(const char* name, Level value) {
    json_[name] = value == Level::full ? "full" : "edges";
  }

  std::string finish() {
    json_["format"] = kFactsFormat;
    return json_.dump();
  }

 private:
  json json_ = json::object();
};

/// Keeps the first fault; what follows it is read as far as it goes.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {}

  void text(const char* name, std::string& value) {
    read_text(name, value, "a line of text",
              [](const std::string& words) { return !words.empty(); });
  }
  void note(const char* name, std::string& value) {
    read_text(name, value, "a line of text", [](const std::string&) { return true; });
  }
  void word(const char* name, std::string& value, Words words) {
    read_text(name, value, "a word of this format", [words](const std::string& text) {
      return std::find(words.begin(), words.end(), text) != words.end();
    });
  }
  void flag(const char* name, bool& value) {
    const json* found = find(name);
    if (found == nullptr) return;
    if (!found->is_boolean()) return fail("the fact {} is not true or false", name);
    value = *found;
  }
  void seed(const char* name, uint64_t& value) {
    const json* found = find(name);
    if (found == nullptr) return;
    if (!found->is_number_unsigned()) return fail("the fact {} is not a whole number", name);
    value = *found;
  }
  void number(const char* name, double& value, double least, double most) {
    const json* found = find(name);
    if (found == nullptr) return;
    const double read = found->is_number() ? found->get<double>() : NAN;
    if (!(read >= least && read <= most)) {
      return fail("the fact {} is not a number from {} to {}", name, least, most);
    }
    value = read;
  }
  void integer(const char* name, int& value, int least, int most) {
    const json* found = find(name);
    if (found == nullptr) return;
    const bool whole = found->is_number_integer();
    const auto too_large = [&] {
      return found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(most);
    };
    if (!whole || too_large() || found->get<int64_t>() < least || found->get<int64_t>() > most) {
      return fail("the fact {} is not a whole number from {} to {}", name, least, most);
    }
    value = *found;
  }
  void level(const char* name, Level& value) {
    std::string text;
    word(name, text, {"edges", "full"});
    value = text == "full" ? Level::full : Level::edges;
  }

  /// What a reader of this format would pass over is a fault too.
  std::string finish() {
    if (fault_.empty() && known_ + 1 != object_.size()) {  // and "format" itself
      fault_ = "it has facts that this format does not";
    }
    return fault_;
  }

 private:
  template <class... Args>
  void fail(fmt::format_string<Args...> sentence, Args&&... args) {
    if (fault_.empty()) fault_ = fmt::format(sentence, std::forward<Args>(args)...);
  }
  const json* find(const char* name) {
    const auto found = object_.find(name);
    if (found == object_.end()) {
      fail("the fact {} is missing", name);
      return nullptr;
    }
    ++known_;
    return &*found;
  }
  template <class Rule>
  void read_text(const char* name, std::string& value, const char* what, Rule rule) {
    const json* found = find(name);
    if (found == nullptr) return;
    const auto* words = found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
    const auto is_control = [](char letter) {
      return static_cast<unsigned char>(letter) < ' ' || letter == 127;
    };
    if (words == nullptr || words->size() > kLongestText || !rule(*words) ||
        std::any_of(words->begin(), words->end(), is_control)) {
      return fail("the fact {} is not {}", name, what);
    }
    value = *words;
  }

  const json& object_;
  std::size_t known_ = 0;
  std::string fault_;
};

Status refused(const std::string& name, const std::string& why) {
  return invalid("trace", "{}: {}", name, why);
}

/// The format, or 0 where the text is no facts at all.
int format_of(const json& facts) {
  if (!facts.is_object() || !facts.contains("format")) return 0;
  const json& format = facts["format"];
  if (!format.is_number_unsigned()) return 0;
  return static_cast<int>(std::min<uint64_t>(format.get<uint64_t>(), 1 << 20));
}

}  // namespace

std::string encode_facts(const Facts& facts) {
  Writer writer;
  visit_facts(facts, writer);
  return writer.finish();
}

Result<Facts> decode_facts(std::string_view text, const std::string& name) {
  const json object = json::parse(text, nullptr, false);
  const int format = object.is_discarded() ? 0 : format_of(object);
  if (format == 0) return refused(name, "the facts of the run cannot be read");
  if (format != kFactsFormat) {
    return refused(name,
                   fmt::format("a trace of format {}; this deuce reads {}", format, kFactsFormat));
  }
  Facts facts;
  Reader reader(object);
  visit_facts(facts, reader);
  if (const std::string fault = reader.finish(); !fault.empty()) return refused(name, fault);
  if (facts.simulated == facts.costs.empty()) {
    return refused(name, "the facts simulated and costs contradict each other");
  }
  return facts;
}

}  // namespace deuce::trace
