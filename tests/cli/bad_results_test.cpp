// SPDX-License-Identifier: Apache-2.0
// Results that are not what they are taken for: another figure's, of a wrong check, of a wrong
// type.
#include <gtest/gtest.h>

#include "cli/result_json.h"
#include "cli/tool.h"

namespace deuce::cli {
namespace {

/// A point of figure 9 or, at 128k keys, of figure 10.
Json figure_point(int64_t kv_len, int q_len = 1, int batch = 32) {
  Json point = point_json({.kv_len = kv_len, .batch = batch, .q_len = q_len});
  point["check"] = {{"ok", true}, {"first_failure", ""}};
  return point;
}

Json with(Json point, const char* field, const Json& value) {
  point[field] = value;
  return point;
}

Json result(const std::vector<Json>& points) {
  return {{"schema", 1},
          {"machine", {{"cpu", "a cpu"}}},
          {"build", {{"commit", "abc123"}}},
          {"points", points}};
}

void write(const Folder& folder, const char* name, const Json& json) {
  std::ofstream(folder.file(name)) << json.dump();
}

TEST(BenchFigures, RefuseAResultThatIsNotTheirs) {
  const Folder folder;
  constexpr int64_t kLongest = 131072;
  const Json own = figure_point(4096);
  const std::pair<Json, const char*> wrong[] = {
      {with(own, "backend", "cpu"), "it has backend cpu, the figure hopper"},
      {with(own, "dtype", "e4m3"), "it has type e4m3, the figure bf16"},
      {with(own, "mode", "hot"), "it has mode hot, the figure rotated"},
      {with(own, "page_size", 16), "it has pages of 16, NHD, the figure a contiguous cache, NHD"},
      {with(own, "window_left", 7), "it has a window, sinks or softcap, the figure none"},
      {with(own, "q_heads", 32), "it has 32:1 heads of dim 64, the figure a layer of the figure"},
      {figure_point(4096, 1, 8), "it has batch 8, the figure 32 (--batch)"},
      {figure_point(kLongest, 3), "it is a result of figure10"},
      {figure_point(5000), "it has 5000 keys with q_len 1, which the figure does not show"},
      {with(own, "check", {{"ok", false}}), "it holds no time"},
  };
  for (const auto& [point, why] : wrong) {
    write(folder, "m.json", result({point}));
    const ToolOutput ran = folder.run("bench figure9 --measured m.json");
    EXPECT_EQ(ran.exit_code, 2) << why;
    EXPECT_EQ(ran.err, std::string("deuce bench figure9: no point of m.json belongs to this "
                                   "figure: ") +
                           why + "\n");
    EXPECT_FALSE(std::filesystem::exists(folder.file("figure9.svg"))) << why;
  }
  // The point that both share does not make the one a result of the other.
  write(folder, "m.json", result({figure_point(kLongest), figure_point(kLongest, 3)}));
  EXPECT_EQ(folder.run("bench figure9 --measured m.json").exit_code, 2);
  EXPECT_EQ(folder.run("bench figure10 --measured m.json").exit_code, 0);
}

TEST(BenchFigures, TakeNoMeasuringOptionsBesideAResult) {
  const Folder folder;
  write(folder, "m.json", result({figure_point(4096)}));
  for (const std::string option : {"--seconds", "--noise", "--seed"}) {
    const ToolOutput ran = folder.run("bench figure9 --measured m.json " + option + " 1");
    EXPECT_EQ(ran.exit_code, 2) << option;
    EXPECT_NE(ran.err.find(option), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find("--measured"), std::string::npos) << ran.err;
  }
}

TEST(BenchFigures, SayOfHopperWhatThePictureSays) {
  const Folder folder;
  write(folder, "m.json", result({figure_point(4096)}));
  const ToolOutput ran = folder.run("bench figure9 --measured m.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string words = "base only: a second score slot costs the Hopper kernel time";
  EXPECT_NE(ran.out.find(words), std::string::npos) << ran.out;
  EXPECT_NE(file_text(folder.file("figure9.svg")).find(words), std::string::npos);
}

TEST(BenchCompare, DoesNotJudgeAWrongOrUntimedPoint) {
  const Folder folder;
  Json untimed = figure_point(8);
  untimed.erase("time_s");
  const Json wrong =
      with(figure_point(8), "check", {{"ok", false}, {"first_failure", "row 3 is off"}});
  write(folder, "good.json", result({figure_point(4), figure_point(8)}));
  write(folder, "wrong.json", result({figure_point(4), wrong}));
  write(folder, "untimed.json", result({figure_point(4), untimed}));
  const std::tuple<const char*, const char*> cases[] = {
      {"good.json wrong.json",
       "B: 16:1 x 64, 32 x 8, bf16, contiguous: check failed: row 3 is off"},
      {"wrong.json good.json",
       "A: 16:1 x 64, 32 x 8, bf16, contiguous: check failed: row 3 is off"},
      {"good.json untimed.json", "B: 16:1 x 64, 32 x 8, bf16, contiguous: not timed"},
      {"untimed.json wrong.json", "A: 16:1 x 64, 32 x 8, bf16, contiguous: not timed"},
  };
  for (const auto& [files, fault] : cases) {
    const ToolOutput ran = folder.run(std::string("bench compare ") + files);
    EXPECT_EQ(ran.exit_code, 9) << files << ran.err;
    EXPECT_NE(ran.out.find(fault), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find("1 the same within noise or 1 %, 1 not judged"), std::string::npos)
        << ran.out;
  }
  EXPECT_EQ(folder.run("bench compare good.json good.json").exit_code, 0);
  const ToolOutput wide = folder.run("bench compare good.json good.json --threshold 1000");
  EXPECT_NE(wide.out.find("noise or 1000 %\n"), std::string::npos) << wide.out;
}

TEST(BenchPlot, SaysWhichPointsItDoesNotDraw) {
  const Folder folder;
  write(folder, "good.json", result({figure_point(4)}));
  write(folder, "mixed.json",
        result({figure_point(4), with(figure_point(8), "check",
                                      {{"ok", false}, {"first_failure", "row 3 is off"}})}));
  const ToolOutput ran = folder.run("bench plot good.json mixed.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(
      ran.err,
      "mixed.json: 16:1 x 64, 32 x 8, bf16, contiguous: not drawn: check failed: row 3 is off\n");
  const std::string svg = file_text(folder.file("bandwidth.svg"));
  const std::string words = "not drawn: 1 of its points, without a result";
  EXPECT_NE(svg.find(words), std::string::npos) << svg;
  EXPECT_EQ(svg.find(words), svg.rfind(words));  // of the file that has it
}

TEST(BenchResult, IsRefusedByField) {
  const Folder folder;
  std::filesystem::create_directory(folder.file("folder"));
  write(folder, "a.json", result({figure_point(4)}));
  Json machine = result({figure_point(4)});
  machine["machine"] = {{"gpu", {{"name", 7}}}};
  Json missing = figure_point(4);
  missing.erase("softcap");
  const std::pair<Json, const char*> wrong[] = {
      {result({figure_point(4), with(figure_point(4), "q_len", "one")}),
       "point 1: q_len is \"one\", not an integer"},
      {result({with(figure_point(4), "kv_lens", {4, "x"})}),
       "point 0: kv_lens is [4,\"x\"], not a list of integers"},
      {result({with(figure_point(4), "time_s", {{"median", nullptr}})}),
       "point 0: time_s.median is null, not a number"},
      {result({with(figure_point(4), "check", {{"ok", "yes"}})}),
       "point 0: check.ok is \"yes\", not true or false"},
      {result({missing}), "point 0: softcap is missing"},
      {result({Json(3)}), "point 0: preset is missing"},
      {machine, "machine.gpu.name is 7, not a text"},
  };
  for (const auto& [json, sentence] : wrong) {
    write(folder, "b.json", json);
    const ToolOutput ran = folder.run("bench compare a.json b.json");
    EXPECT_EQ(ran.exit_code, 2) << sentence;
    EXPECT_EQ(ran.err, std::string("deuce bench compare: b.json: ") + sentence + "\n");
  }
  EXPECT_EQ(folder.run("bench plot folder").err,
            "deuce bench plot: folder: is a folder, not a file\n");
}

}  // namespace
}  // namespace deuce::cli
