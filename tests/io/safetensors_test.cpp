// SPDX-License-Identifier: Apache-2.0
// Good safetensors files: what the reader hands out, and what the writer promises.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "io/safetensors.h"
#include "safetensors_bytes.h"

namespace deuce::io {
namespace {

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct TempFile {
  std::string path;
  explicit TempFile(const char* name) : path(testing::TempDir() + "deuce_io_" + name) {}
  ~TempFile() { std::remove(path.c_str()); }
};

TensorView as_tensor(const char* name, TensorType type, std::vector<int64_t> shape,
                     const std::string& bytes) {
  return {name, type, std::move(shape), reinterpret_cast<const std::byte*>(bytes.data()),
          bytes.size()};
}

TEST(SafetensorsView, HandsOutTensorsAndMetadata) {
  const std::string bytes = file_bytes(
      R"({"__metadata__":{"causal":"true"},"b":{"dtype":"I32","shape":[],"data_offsets":[8,12]},)"
      R"("a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}   )",
      12);
  const auto file = SafetensorsFile::view("x", as_bytes(bytes));
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  EXPECT_EQ(file.value().metadata().at("causal"), "true");
  ASSERT_EQ(file.value().tensors().size(), 2U);
  const TensorView* a = file.value().find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, TensorType::bf16);
  EXPECT_EQ(a->shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(static_cast<const void*>(a->data), bytes.data() + bytes.size() - 12);
  EXPECT_TRUE(file.value().find("b")->shape.empty());
  EXPECT_EQ(file.value().find("c"), nullptr);
}

TEST(SafetensorsView, AcceptsEmptyTensorsEvenIfTheOtherExtentsAreHuge) {
  const std::string bytes =
      file_bytes(R"({"a":{"dtype":"F64","shape":[9223372036854775807,0,9223372036854775807],)"
                 R"("data_offsets":[4,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                 4);
  const auto file = SafetensorsFile::view("x", as_bytes(bytes));
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  EXPECT_EQ(file.value().find("a")->bytes, 0U);
}

TEST(SafetensorsView, AcceptsAFileWithoutTensors) {
  const std::string bytes = file_bytes("{}", 0);
  EXPECT_TRUE(SafetensorsFile::view("x", as_bytes(bytes)).ok());
}

TEST(SafetensorsWrite, RoundTripsEveryType) {
  const TempFile temp("round_trip");
  std::vector<std::string> contents;
  std::vector<TensorView> tensors;
  for (const TensorTypeRow& row : kTensorTypes) {
    contents.emplace_back(static_cast<std::size_t>(6 * row.bytes),
                          static_cast<char>(contents.size()));
  }
  for (std::size_t i = 0; i < kTensorTypes.size(); ++i) {
    tensors.push_back(
        as_tensor(kTensorTypes[i].name.data(), kTensorTypes[i].type, {2, 3}, contents[i]));
  }
  ASSERT_TRUE(write_safetensors(temp.path, tensors, {{"softcap", "30"}}).ok());
  const auto file = SafetensorsFile::open(temp.path);
  ASSERT_TRUE(file.ok()) << file.status().sentence();
  EXPECT_EQ(file.value().metadata(), (Metadata{{"softcap", "30"}}));
  for (const TensorView& written : tensors) {
    const TensorView* read = file.value().find(written.name);
    ASSERT_NE(read, nullptr) << written.name;
    EXPECT_EQ(read->type, written.type);
    EXPECT_EQ(read->shape, written.shape);
    ASSERT_EQ(read->bytes, written.bytes);
    EXPECT_EQ(std::memcmp(read->data, written.data, read->bytes), 0) << written.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->data) % tensor_type_bytes(read->type), 0U)
        << written.name << " is not aligned to its elements";
  }
}

TEST(SafetensorsWrite, GivesTheSameBytesInAnyOrderOfTensors) {
  const TempFile first("order_a"), second("order_b");
  const std::string four(4, 'x'), eight(8, 'y');
  const TensorView a = as_tensor("a", TensorType::f16, {2}, four);
  const TensorView b = as_tensor("b", TensorType::i64, {1}, eight);
  ASSERT_TRUE(write_safetensors(first.path, std::vector{a, b}).ok());
  ASSERT_TRUE(write_safetensors(second.path, std::vector{b, a}).ok());
  const std::string bytes = read_bytes(first.path);
  EXPECT_EQ(bytes, read_bytes(second.path));
  EXPECT_EQ((bytes.size() - 12) % 64, 0U) << "the data section is not aligned";
}

TEST(SafetensorsWrite, RefusesAShapeThatDoesNotFitItsBytes) {
  const TempFile temp("bad_shape");
  const std::string four(4, 'x');
  const Status status =
      write_safetensors(temp.path, std::vector{as_tensor("q", TensorType::f16, {3}, four)});
  EXPECT_EQ(status.sentence(),
            temp.path + ": tensor 'q': data_offsets [0, 4] hold 4 bytes, F16 [3] needs 6");
  EXPECT_TRUE(read_bytes(temp.path).empty());
}

TEST(SafetensorsWrite, RefusesANameTwice) {
  const TempFile temp("twice");
  const std::string four(4, 'x');
  const TensorView q = as_tensor("q", TensorType::f16, {2}, four);
  EXPECT_EQ(write_safetensors(temp.path, std::vector{q, q}).sentence(),
            temp.path + ": tensor name 'q' is taken");
}

TEST(SafetensorsWrite, LeavesAnOlderFileWholeWhenItFails) {
  const TempFile temp("kept");
  std::ofstream(temp.path) << "older";
  ASSERT_EQ(::mkdir((temp.path + ".partial").c_str(), 0700), 0);  // cannot be created as a file
  const Status status = write_safetensors(temp.path, {});
  std::remove((temp.path + ".partial").c_str());
  EXPECT_EQ(status.code(), DEUCE_RUNTIME_ERROR);
  EXPECT_EQ(read_bytes(temp.path), "older");
}

TEST(SafetensorsWrite, ReportsAFullDevice) {
  const std::string four(4, 'x');
  const Status status =
      write_safetensors("/dev/full", std::vector{as_tensor("q", TensorType::f16, {2}, four)});
  EXPECT_EQ(status.sentence(), "/dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace deuce::io
