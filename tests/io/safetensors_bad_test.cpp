// SPDX-License-Identifier: Apache-2.0
// Every way a safetensors file can be wrong: refused whole, by a sentence that names file and
// tensor.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "io/safetensors.h"
#include "safetensors_bytes.h"

namespace deuce::io {
namespace {

struct BadFile {
  const char* name;
  std::string bytes;
  const char* sentence;  // after "x.safetensors: "
};
void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

std::string tensor(const char* fields) { return std::string(R"({"q":{)") + fields + "}}"; }
constexpr const char* kGood = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";

std::vector<BadFile> bad_files() {
  const std::string good = tensor(kGood);
  std::string deep = R"({"q":)";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  return {
      {"empty", "", "0 bytes are too few for a safetensors file (8 of header length first)"},
      {"seven_bytes", std::string(7, '\0'),
       "7 bytes are too few for a safetensors file (8 of header length first)"},
      {"length_beyond_file", file_bytes(good, "", good.size() + 1),
       "header length 55 is more than the 54 bytes that follow it"},
      {"length_huge", file_bytes(good, "", 100'000'001),
       "header length 100000001 is above the format's 100000000"},
      {"length_all_ones", file_bytes(good, "", ~uint64_t{0}),
       "header length 18446744073709551615 is above the format's 100000000"},
      {"header_empty", file_bytes("", 0), "the header does not begin with '{'"},
      {"header_array", file_bytes("[]", 0), "the header does not begin with '{'"},
      {"header_space_first", file_bytes(" {}", 0), "the header does not begin with '{'"},
      {"header_cut", file_bytes(R"({"q":)", 0), "the header is not valid JSON at its byte 6"},
      {"header_tail", file_bytes("{} x", 0), "the header is not valid JSON at its byte 4"},
      {"header_zero_tail", file_bytes(std::string_view("{}\0x", 4), 0),
       "the header holds a zero byte at its byte 2"},
      {"header_not_utf8", file_bytes("{\"\xff\":1}", 0),
       "the header is not valid JSON at its byte 3"},
      {"deep_nesting", file_bytes(deep, 0), "entry 'q' is an array, not an object"},
      {"deep_in_shape", file_bytes(tensor(R"("shape":[[1]])"), 0),
       "tensor 'q': 'shape' has an array where it must not"},
      {"entry_number", file_bytes(R"({"q":1})", 0), "entry 'q' is a number, not an object"},
      {"entry_null", file_bytes(R"({"q":null})", 0), "entry 'q' is null, not an object"},
      {"name_twice",
       file_bytes(R"({"q":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("q":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  8),
       "the name 'q' appears twice"},
      {"field_twice", file_bytes(tensor(R"("dtype":"F32","dtype":"F16")"), 8),
       "'q': 'dtype' appears twice"},
      {"field_unknown", file_bytes(tensor(R"("dtype":"F32","strides":[1])"), 8),
       "tensor 'q': unknown field 'strides'"},
      {"dtype_unknown", file_bytes(tensor(R"("dtype":"F33","shape":[2],"data_offsets":[0,8])"), 8),
       "tensor 'q': unknown dtype 'F33'"},
      {"dtype_number", file_bytes(tensor(R"("dtype":3)"), 8),
       "tensor 'q': 'dtype' has a number where it must not"},
      {"dtype_missing", file_bytes(tensor(R"("shape":[2],"data_offsets":[0,8])"), 8),
       "tensor 'q': dtype is missing"},
      {"shape_missing", file_bytes(tensor(R"("dtype":"F32","data_offsets":[0,8])"), 8),
       "tensor 'q': shape is missing"},
      {"offsets_missing", file_bytes(tensor(R"("dtype":"F32","shape":[2])"), 8),
       "tensor 'q': data_offsets is missing"},
      {"offsets_one", file_bytes(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), 8),
       "tensor 'q': data_offsets has 1 numbers, not two"},
      {"offsets_three",
       file_bytes(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])"), 8),
       "tensor 'q': data_offsets has more than two numbers"},
      {"offsets_string", file_bytes(tensor(R"("data_offsets":"0,8")"), 8),
       "tensor 'q': 'data_offsets' has a string where it must not"},
      {"offsets_backwards",
       file_bytes(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), 8),
       "tensor 'q': data_offsets [8, 0] run backwards"},
      {"offsets_beyond", file_bytes(tensor(kGood), 7),
       "tensor 'q': data_offsets [0, 8] end beyond the 7 bytes of data"},
      {"offsets_negative",
       file_bytes(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])"), 8),
       "tensor 'q': 'data_offsets' has a negative number where it must not"},
      {"offsets_too_large", file_bytes(tensor(R"("data_offsets":[0,18446744073709551616])"), 8),
       "tensor 'q': 'data_offsets' has a number that is not an integer of 64 bits where it must "
       "not"},
      {"shape_fraction", file_bytes(tensor(R"("shape":[2.0])"), 8),
       "tensor 'q': 'shape' has a number that is not an integer of 64 bits where it must not"},
      {"shape_negative", file_bytes(tensor(R"("shape":[-2])"), 8),
       "tensor 'q': 'shape' has a negative number where it must not"},
      {"shape_above_63_bits", file_bytes(tensor(R"("shape":[9223372036854775808])"), 8),
       "tensor 'q': dimension 9223372036854775808 of its shape does not fit 63 bits"},
      {"product_wraps_to_8",
       file_bytes(tensor(R"("dtype":"F32","shape":[4611686018427387904,4,2],)"
                         R"("data_offsets":[0,8])"),
                  8),
       "tensor 'q': the size of F32 [4611686018427387904, 4, 2] does not fit 63 bits"},
      {"too_few_bytes", file_bytes(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), 8),
       "tensor 'q': data_offsets [0, 8] hold 8 bytes, F32 [3] needs 12"},
      {"hole_at_front",
       file_bytes(tensor(R"("dtype":"F32","shape":[2],"data_offsets":[4,12])"), 12),
       "tensor 'q': bytes 0 to 4 before it belong to no tensor"},
      {"hole_at_end", file_bytes(tensor(kGood), 9),
       "1 bytes after the last tensor belong to no tensor"},
      {"overlap",
       file_bytes(R"({"k":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("q":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                  12),
       "tensor 'q': begins at byte 4 of the data, inside another tensor"},
      {"metadata_number", file_bytes(R"({"__metadata__":{"causal":1}})", 0),
       "metadata 'causal' is a number, not a string"},
      {"metadata_twice", file_bytes(R"({"__metadata__":{"a":"1","a":"2"}})", 0),
       "'__metadata__': 'a' appears twice"},
      {"metadata_string", file_bytes(R"({"__metadata__":"x"})", 0),
       "entry '__metadata__' is a string, not an object"},
      {"name_unprintable", file_bytes("{\"a\\u0007b\":1}", 0),
       "entry 'a?b' is a number, not an object"},
  };
}

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsRefusedByName) {
  const auto file = SafetensorsFile::view("x.safetensors", as_bytes(GetParam().bytes));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), DEUCE_INVALID_ARGUMENT);
  EXPECT_EQ(file.status().sentence(), std::string("x.safetensors: ") + GetParam().sentence);
  EXPECT_FALSE(file.status().field().empty());
}

TEST_P(BadSafetensors, IsRefusedAlikeWhenReadFromDisk) {
  const std::string path = testing::TempDir() + "deuce_bad_" + GetParam().name + ".safetensors";
  std::ofstream(path, std::ios::binary) << GetParam().bytes;
  const auto file = SafetensorsFile::open(path);
  std::remove(path.c_str());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().sentence(), path + ": " + GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(Files, BadSafetensors, testing::ValuesIn(bad_files()),
                         [](const auto& file) { return std::string(file.param.name); });

TEST(SafetensorsOpen, NamesAFileThatIsNotThere) {
  const auto file = SafetensorsFile::open("/nowhere/x.safetensors");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().sentence(),
            "/nowhere/x.safetensors: cannot be opened: No such file or directory");
}

TEST(SafetensorsOpen, RefusesADirectory) {
  const auto file = SafetensorsFile::open("/tmp");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().sentence(), "/tmp: is not a regular file");
}

TEST(SafetensorsView, RefusesEveryTruncationOfAGoodFile) {
  const std::string good = file_bytes(tensor(kGood), 8);
  ASSERT_TRUE(SafetensorsFile::view("x", as_bytes(good)).ok());
  for (std::size_t length = 0; length < good.size(); ++length) {
    const std::string cut = good.substr(0, length);
    EXPECT_FALSE(SafetensorsFile::view("x", as_bytes(cut)).ok()) << "cut to " << length << " bytes";
  }
}

}  // namespace
}  // namespace deuce::io
