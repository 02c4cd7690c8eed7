// SPDX-License-Identifier: Apache-2.0
// JSON header of a safetensors file, read as a stream of events: duplicate keys, which a document
// tree would merge silently, are seen here, and no input can build a deep or large tree.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "io/safetensors_layout.h"

namespace deuce::io {
namespace {

using Json = nlohmann::json;
constexpr const char* kMetadataKey = "__metadata__";

class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderEvents(const std::string& file) : file_(file) {}

  Header& header() { return header_; }
  const Status& status() const { return status_; }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number that is not an integer of 64 bits");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_unsigned(number_unsigned_t number) override;
  bool string(string_t& text) override;
  bool start_object(std::size_t) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return fail("file", "the header is not valid JSON at its byte {}", position);
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };

  template <class... Args>
  bool fail(const std::string& field, fmt::format_string<Args...> text, Args&&... args) {
    status_ = invalid(field, "{}: {}", file_, fmt::format(text, std::forward<Args>(args)...));
    return false;
  }
  bool unexpected(std::string_view what);
  bool finish_tensor();

  const std::string& file_;
  Header header_;
  Status status_;
  Place place_ = Place::outside;
  std::string key_, field_;  // key at the top level; key inside a tensor or metadata
  std::unordered_set<std::string> names_, fields_;  // keys seen at the top level, in a tensor
  TensorEntry tensor_;
  std::vector<uint64_t> offsets_;
};

bool HeaderEvents::unexpected(std::string_view what) {
  switch (place_) {
    case Place::outside: return fail("file", "the header is {}, not a JSON object", what);
    case Place::top: return fail(key_, "entry {} is {}, not an object", quoted_name(key_), what);
    case Place::metadata:
      return fail(field_, "metadata {} is {}, not a string", quoted_name(field_), what);
    case Place::tensor:
    case Place::shape:
    case Place::offsets: break;
  }
  return fail(key_, "tensor {}: {} has {} where it must not", quoted_name(key_),
              quoted_name(field_), what);
}

bool HeaderEvents::number_unsigned(number_unsigned_t number) {
  if (place_ == Place::offsets) {
    if (offsets_.size() == 2)
      return fail(key_, "tensor {}: data_offsets has more than two numbers", quoted_name(key_));
    offsets_.push_back(number);
    return true;
  }
  if (place_ != Place::shape) return unexpected("a number");
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return fail(key_, "tensor {}: dimension {} of its shape does not fit 63 bits",
                quoted_name(key_), number);
  }
  tensor_.shape.push_back(static_cast<int64_t>(number));
  return true;
}

bool HeaderEvents::string(string_t& text) {
  if (place_ == Place::metadata) {
    header_.metadata.emplace(field_, text);
    return true;
  }
  if (place_ != Place::tensor || field_ != "dtype") return unexpected("a string");
  const auto type = tensor_type_from_name(text);
  if (!type) return fail(key_, "tensor {}: unknown dtype {}", quoted_name(key_), quoted_name(text));
  tensor_.type = *type;
  return true;
}

bool HeaderEvents::start_object(std::size_t) {
  switch (place_) {
    case Place::outside: place_ = Place::top; return true;
    case Place::top:
      fields_.clear();
      offsets_.clear();
      tensor_ = TensorEntry{.name = key_, .shape = {}};
      place_ = key_ == kMetadataKey ? Place::metadata : Place::tensor;
      return true;
    default: return unexpected("an object");
  }
}

bool HeaderEvents::end_object() {
  const bool tensor_ends = place_ == Place::tensor;
  place_ = place_ == Place::top ? Place::outside : Place::top;
  return !tensor_ends || finish_tensor();
}

bool HeaderEvents::finish_tensor() {
  for (const char* needed : {"dtype", "shape", "data_offsets"}) {
    if (!fields_.contains(needed))
      return fail(key_, "tensor {}: {} is missing", quoted_name(key_), needed);
  }
  if (offsets_.size() != 2) {
    return fail(key_, "tensor {}: data_offsets has {} numbers, not two", quoted_name(key_),
                offsets_.size());
  }
  tensor_.begin = offsets_[0];
  tensor_.end = offsets_[1];
  header_.tensors.push_back(std::move(tensor_));
  return true;
}

bool HeaderEvents::start_array(std::size_t) {
  if (place_ != Place::tensor || field_ == "dtype") return unexpected("an array");
  place_ = field_ == "shape" ? Place::shape : Place::offsets;
  return true;
}

bool HeaderEvents::end_array() {
  place_ = Place::tensor;
  return true;
}

bool HeaderEvents::key(string_t& name) {
  if (place_ == Place::top) {
    key_ = name;
    if (!names_.insert(name).second)
      return fail(key_, "the name {} appears twice", quoted_name(key_));
    return true;
  }
  field_ = name;
  if (!fields_.insert(name).second) {
    return fail(key_, "{}: {} appears twice", quoted_name(key_), quoted_name(field_));
  }
  if (place_ == Place::tensor && name != "dtype" && name != "shape" && name != "data_offsets") {
    return fail(key_, "tensor {}: unknown field {}", quoted_name(key_), quoted_name(field_));
  }
  return true;
}

}  // namespace

Result<Header> parse_header(const std::string& file, std::string_view json, uint64_t data_bytes) {
  if (json.empty() || json.front() != '{') {
    return invalid("file", "{}: the header does not begin with '{{'", file);
  }
  // The JSON lexer takes a zero byte for the end of its input and would not look behind it.
  if (const auto zero = json.find('\0'); zero != std::string_view::npos) {
    return invalid("file", "{}: the header holds a zero byte at its byte {}", file, zero);
  }
  HeaderEvents events(file);
  if (!Json::sax_parse(json, &events)) return events.status();
  Header header = std::move(events.header());
  for (const TensorEntry& tensor : header.tensors) {
    if (Status status = check_entry(file, tensor, data_bytes); !status.ok()) return status;
  }
  // Ends break ties, so that an empty tensor stands before the one that begins at the same byte.
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  if (Status status = check_cover(file, header.tensors, data_bytes); !status.ok()) return status;
  return header;
}

}  // namespace deuce::io
