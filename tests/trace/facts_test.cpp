// SPDX-License-Identifier: Apache-2.0
// The facts of a trace file: each is needed, bounded and named when it is refused.
#include "trace/facts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/trace_facts.h"

namespace deuce::trace {
namespace {

using nlohmann::json;

json facts_json() { return json::parse(encode_facts(test::plausible_facts())); }

std::string refusal(const json& facts) {
  const Result<Facts> read = decode_facts(facts.dump(), "x.deucetrace");
  return read.ok() ? "read" : read.status().sentence();
}

TEST(TraceFacts, ReadAsTheyWereWritten) {
  Facts facts = test::plausible_facts();
  facts.simulated = false;
  facts.costs.clear();
  facts.level = Level::full;
  facts.seed = ~uint64_t{0};
  facts.clock_hz = 1980000000.1;
  facts.driver = "580.159.04";
  facts.recorded = "2026-11-30";
  const Result<Facts> read = decode_facts(encode_facts(facts), "t");
  ASSERT_TRUE(read.ok()) << read.status().sentence();
  EXPECT_EQ(encode_facts(read.value()), encode_facts(facts));
  EXPECT_EQ(read.value().clock_hz, facts.clock_hz);
  EXPECT_EQ(read.value().seed, facts.seed);
  EXPECT_EQ(read.value().driver, facts.driver);
  EXPECT_EQ(read.value().recorded, facts.recorded);
  EXPECT_EQ(read.value().commit, facts.commit);
}

TEST(TraceFacts, EachIsNeededAndNamed) {
  const json whole = facts_json();
  for (const auto& [name, value] : whole.items()) {
    json facts = whole;
    facts.erase(name);
    EXPECT_EQ(refusal(facts), name == "format" ? "x.deucetrace: the facts of the run cannot be read"
                                               : "x.deucetrace: the fact " + name + " is missing");
  }
}

TEST(TraceFacts, NoneIsOfAnotherKindOrBeyondItsBounds) {
  const json whole = facts_json();
  for (const auto& [name, value] : whole.items()) {
    if (name == "format") continue;
    std::vector<json> lies{nullptr, json::array(), json::object()};
    if (value.is_number()) lies.insert(lies.end(), {-1, -1e300, 1e300, "1", true});
    if (value.is_number_integer()) lies.insert(lies.end(), {1.5});
    if (value.is_number_integer() && name != "seed") lies.insert(lies.end(), {~uint64_t{0}, 0});
    if (value.is_string()) lies.insert(lies.end(), {1, "two\nlines", std::string(2000, 'x')});
    if (value.is_boolean()) lies.insert(lies.end(), {0, "true"});
    for (const json& lie : lies) {
      json facts = facts_json();
      facts[name] = lie;
      EXPECT_EQ(refusal(facts).rfind("x.deucetrace: the fact " + name + " is not ", 0), 0U)
          << name << " = " << lie << ": " << refusal(facts);
    }
  }
}

TEST(TraceFacts, AnotherFormatAndUnknownFactsAreRefused) {
  json facts = facts_json();
  facts["format"] = kFactsFormat + 1;
  EXPECT_EQ(refusal(facts), "x.deucetrace: a trace of format 3; this deuce reads 2");
  for (const json& lie : {json(0), json(-1), json("2"), json(1.5)}) {
    facts["format"] = lie;
    EXPECT_EQ(refusal(facts), "x.deucetrace: the facts of the run cannot be read") << lie;
  }
  facts = facts_json();
  facts["colour"] = "blue";
  EXPECT_EQ(refusal(facts), "x.deucetrace: it has facts that this format does not");
  facts = facts_json();
  facts["simulated"] = false;
  EXPECT_EQ(refusal(facts), "x.deucetrace: the facts simulated and costs contradict each other");
}

}  // namespace
}  // namespace deuce::trace
