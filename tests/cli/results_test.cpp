// SPDX-License-Identifier: Apache-2.0
// What is done with benchmark results: judged against each other, drawn, and set beside the timing
// model in the article's figures.
#include <gtest/gtest.h>

#include <regex>

#include "bench_compare.h"
#include "cli/result_json.h"
#include "cli/tool.h"
#include "device.h"
#include "trace/svg.h"

namespace deuce::cli {
namespace {

void write_result(const std::string& path, const std::vector<PointSpec>& specs) {
  Json json{{"schema", 1},
            {"machine", {{"cpu", "a cpu"}, {"gpu", {{"name", "Some GPU"}}}}},
            {"build", {{"commit", "abc123"}}},
            {"points", Json::array()}};
  for (const PointSpec& spec : specs) json["points"].push_back(point_json(spec));
  std::ofstream(path) << json.dump();
}

ResultPoint timed(double median, double half) {
  ResultPoint point;
  point.kv_lens = {8};
  point.median_s = median;
  point.interval = {median * (1 - half), median * (1 + half)};
  return point;
}

TEST(Compare, JudgesWithTheNoiseOfBoth) {
  EXPECT_EQ(compare_points(timed(1, 0.01), timed(1.1, 0.01), 0).change, Change::slower);
  EXPECT_EQ(compare_points(timed(1, 0.01), timed(0.9, 0.01), 0).change, Change::faster);
  EXPECT_EQ(compare_points(timed(1, 0.2), timed(1.1, 0.01), 0).change, Change::same);
  EXPECT_EQ(compare_points(timed(1, 0.01), timed(1.1, 0.2), 0).change, Change::same);
  EXPECT_EQ(compare_points(timed(1, 0), timed(1.005, 0), 0.01).change, Change::same);
  EXPECT_EQ(compare_points(timed(1, 0), timed(1.02, 0), 0.01).change, Change::slower);
}

TEST(Compare, AddsTheNoiseInQuadrature) {
  const Comparison both = compare_points(timed(1, 0.03), timed(1, 0.04), 0);
  EXPECT_NEAR(both.interval.high, 1.05, 2e-3);
  EXPECT_NEAR(both.interval.low, 0.95, 3e-3);
}

TEST(BenchCompare, SaysWhichPointsChangedAndExitsWithNine) {
  const Folder folder;
  write_result(folder.file("a.json"), {{.kv_len = 1024}, {.kv_len = 2048}, {.kv_len = 4096}});
  write_result(
      folder.file("b.json"),
      {{.kv_len = 2048, .median = 2e-3}, {.kv_len = 1024, .median = 0.5e-3}, {.kv_len = 8192}});
  const ToolOutput ran = folder.run("bench compare a.json b.json");
  EXPECT_EQ(ran.exit_code, 9) << ran.err;
  EXPECT_NE(ran.out.find("16:1 x 64, 1 x 2048, bf16, contiguous"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("2.000  1.972 .. 2.028  slower"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("0.500  0.493 .. 0.507  faster"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("only in A: 16:1 x 64, 1 x 4096"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("only in B: 16:1 x 64, 1 x 8192"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("1 faster, 1 slower, 0 the same"), std::string::npos) << ran.out;
  EXPECT_EQ(folder.run("bench compare a.json a.json").exit_code, 0);
  EXPECT_EQ(folder.run("bench compare a.json b.json --threshold 101").exit_code, 0);
}

TEST(BenchCompare, MatchesWhatWasMeasuredByTheToolItself) {
  const Folder folder;
  const std::string bench =
      "bench --backend reference --heads 2:1 --head-dim 16 --batch 1 --kv-len 16,32 --seconds 0.05 "
      "--json >";
  ASSERT_EQ(folder.run(bench + "a.json").exit_code, 0);
  ASSERT_EQ(folder.run(bench + "b.json").exit_code, 0);
  const ToolOutput ran = folder.run("bench compare a.json b.json --threshold 1000000");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("0 faster, 0 slower, 2 the same"), std::string::npos) << ran.out;
}

TEST(BenchResult, IsRefusedByFileAndPoint) {
  const Folder folder;
  write_result(folder.file("a.json"), {{}});
  write_result(folder.file("other.json"), {{.kv_len = 5}});
  std::ofstream(folder.file("text.json")) << "no JSON";
  std::ofstream(folder.file("schema.json")) << R"({"schema": 7, "points": []})";
  std::ofstream(folder.file("point.json"))
      << R"({"schema": 1, "machine": {"cpu": "c"}, "build": {"commit": "x"}, "points": [{}]})";
  const std::pair<const char*, const char*> wrong[] = {
      {"none.json", "none.json: cannot be opened"},
      {"text.json", "text.json: is not a JSON object"},
      {"schema.json", "schema.json: is no result of deuce bench --json, schema 1"},
      {"point.json", "point.json: point 0: "},
      {"other.json", "a.json and other.json have no point in common"},
  };
  for (const auto& [file, sentence] : wrong) {
    const ToolOutput ran = folder.run(std::string("bench compare a.json ") + file);
    EXPECT_EQ(ran.exit_code, 2) << file;
    EXPECT_EQ(ran.err.find(std::string("deuce bench compare: ") + sentence), 0U) << ran.err;
  }
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(BenchPlot, DrawsEverySeriesWithItsRoof) {
  const Folder folder;
  write_result(folder.file("a.json"), {{.kv_len = 1024},
                                       {.kv_len = 2048},
                                       {.kv_len = 1024, .head_dim = 128},
                                       {.kv_len = 2048, .head_dim = 128}});
  write_result(folder.file("b.json"), {{.kv_len = 1024}, {.kv_len = 2048}});
  const ToolOutput ran = folder.run("bench plot a.json b.json --out pictures");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "pictures/bandwidth.svg\n");
  const std::string svg = file_text(folder.file("pictures/bandwidth.svg"));
  EXPECT_EQ(count_of(svg, "<polyline"), 3U * 2);  // three lines, each with a roof
  EXPECT_EQ(count_of(svg, "<circle"), 6U);
  EXPECT_EQ(count_of(svg, "Some GPU, commit abc123"), 2U);
  EXPECT_NE(svg.find("a, batch 1, q_len 1: 1k, 1.00 ms, 0.26 GB/s"), std::string::npos);
  EXPECT_EQ(svg.find("http://"), svg.find("http://www.w3.org/2000/svg"));
}

TEST(BenchPlot, DrawsUnevenBatchesByThemselves) {
  const Folder folder;
  write_result(folder.file("a.json"), {{.kv_lens = {5, 9}}, {.kv_lens = {1, 2}}});
  const ToolOutput ran = folder.run("bench plot a.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "./cases.svg\n");
  const std::string svg = file_text(folder.file("cases.svg"));
  EXPECT_EQ(count_of(svg, "class=\"p0\""), 2U);
  // Labels end where they are placed: they must begin inside the picture.
  const std::regex label("<text x=\"([0-9.]+)\" y=\"[0-9.]+\" class=\"r\">([^<]*)<");
  int labels = 0;
  for (std::sregex_iterator at(svg.begin(), svg.end(), label), end; at != end; ++at, ++labels) {
    EXPECT_GE(std::stod((*at)[1]), trace::text_width((*at)[2].str())) << (*at)[2];
  }
  EXPECT_EQ(labels, 2);
}

// A line of one point would not be seen.
TEST(BenchPlot, DrawsTheRoofOfASinglePointAsAStroke) {
  const Folder folder;
  write_result(folder.file("a.json"), {{.kv_len = 4096, .batch = 2}});
  ASSERT_EQ(folder.run("bench plot a.json").exit_code, 0);
  const std::string svg = file_text(folder.file("bandwidth.svg"));
  const std::regex stroke("<polyline points=\"([0-9.]+),([0-9.]+) ([0-9.]+),([0-9.]+) ?\"");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, stroke)) << svg;
  EXPECT_GT(std::stod(found[3]) - std::stod(found[1]), 10);
  EXPECT_EQ(found[2], found[4]);
}

// More costs may give more gain or less, so the band is that of all three sets.
TEST(BenchFigures, NoPointLiesOutsideItsBand) {
  const Folder folder;
  const std::regex rows(R"(\n +\d+ +1 .*\) +([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\))");
  const std::string text = folder.run("bench figure9").out;
  int points = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), rows), end; at != end; ++at, ++points) {
    const double gain = std::stod((*at)[1]);
    EXPECT_LE(std::stod((*at)[2]), gain) << (*at)[0];
    EXPECT_GE(std::stod((*at)[3]), gain) << (*at)[0];
  }
  EXPECT_EQ(points, 32) << text;
}

TEST(BenchFigures, ShowWhatIsSimulatedMeasuredAndPublished) {
  const Folder folder;
  write_result(folder.file("m.json"), {{.kv_len = 4096, .batch = 32},
                                       {.kv_len = 131072, .batch = 32},
                                       {.kv_len = 131072, .batch = 32, .q_len = 3}});
  for (const char* figure : {"figure9", "figure10"}) {
    const ToolOutput ran = folder.run(std::string("bench ") + figure + " --measured m.json");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.out.find("simulated: a B200 by the timing model"), std::string::npos);
    EXPECT_NE(ran.out.find("measured:  Some GPU, base only"), std::string::npos);
    for (const char* gain : {"16.0 %", "9.3 %", "15.6 %", "14.9 %"})
      EXPECT_NE(ran.out.find(std::string("published gain: up to ") + gain), std::string::npos);
    const std::string svg = file_text(folder.file(std::string(figure) + ".svg"));
    for (const char* words : {"SIMULATED: a B200", "PUBLISHED", "MEASURED: Some GPU, commit abc123",
                              "published: up to 16.0 %", "Colfax Research"})
      EXPECT_NE(svg.find(words), std::string::npos) << words;
    EXPECT_EQ(count_of(svg, ": measured "), 2U) << figure;
    EXPECT_EQ(count_of(svg, "not measured: the"), 3U) << figure;
  }
}

TEST(BenchFigures, SayWhyNothingWasMeasured) {
  if (open_device(Backend::hopper).ok()) GTEST_SKIP() << "there is a Hopper GPU";
  const Folder folder;
  const ToolOutput ran = folder.run("bench figure9 --out .");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("measured:  absent: backend hopper"), std::string::npos) << ran.out;
  const std::string svg = file_text(folder.file("figure9.svg"));
  EXPECT_NE(svg.find("MEASURED: absent"), std::string::npos);
  EXPECT_EQ(count_of(svg, "not measured: backend hopper"), 4U);
}

}  // namespace
}  // namespace deuce::cli
