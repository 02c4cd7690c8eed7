// SPDX-License-Identifier: Apache-2.0
// Files under temporary names until all are complete; see output_file.h.
#include "output_file.h"

#include <filesystem>
#include <fstream>

#include "interrupt.h"

namespace deuce::cli {
namespace {

/// A file of the folder under its own and under its temporary name.
struct Place {
  std::string path, partial;
};

Status failed(const std::string& path, const std::string& why) {
  return {DEUCE_RUNTIME_ERROR, "out", path + ": " + why};
}

std::filesystem::file_type type_of(const std::string& path) {
  std::error_code error;
  return std::filesystem::status(path, error).type();
}

/// What a rename would fail at, or take away. A folder that cannot be looked into is left to the
/// system's own words.
Status refuse_taken(const std::string& path) {
  const std::filesystem::file_type type = type_of(path);
  if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none ||
      type == std::filesystem::file_type::unknown || type == std::filesystem::file_type::regular) {
    return {};
  }
  return failed(path, type == std::filesystem::file_type::directory ? "is a folder, not a file"
                                                                    : "is not a file");
}

void remove(const std::vector<Place>& places) {
  std::error_code error;
  for (const Place& place : places) std::filesystem::remove(place.partial, error);
}

Status write(const Place& place, const std::string& bytes) {
  std::ofstream file(place.partial, std::ios::binary);
  file << bytes;
  file.close();
  return file ? Status{} : failed(place.path, "cannot be written");
}

Status rename(const Place& place) {
  std::error_code error;
  std::filesystem::rename(place.partial, place.path, error);
  return error ? failed(place.path, error.message()) : Status{};
}

/// Stops at the first that fails.
Status rename(const std::vector<Place>& places) {
  for (const Place& place : places) {
    if (Status bad = rename(place); !bad.ok()) return bad;
  }
  return {};
}

}  // namespace

Status save_all(const std::string& folder, const std::vector<OutputFile>& files) {
  for (const OutputFile& file : files) {
    if (Status bad = refuse_taken(folder + "/" + file.name); !bad.ok()) return bad;
  }
  InterruptHeld held;
  std::error_code error;
  const bool created = std::filesystem::create_directories(folder, error);
  if (error) return failed(folder, error.message());
  std::vector<Place> places;
  Status status;
  for (const OutputFile& file : files) {
    if (!status.ok() || held.asked()) break;
    const std::string path = folder + "/" + file.name;
    places.push_back({path, path + ".partial"});
    status = write(places.back(), file.bytes);
  }
  if (status.ok() && !held.asked()) {
    status = rename(places);
    held.too_late();
  }
  if (status.ok() && !held.asked()) return status;
  remove(places);
  if (created) std::filesystem::remove(folder, error);  // only if it is empty
  return status;
}

Status save_in(const std::string& folder, const std::string& name, const std::string& bytes) {
  const std::string path = folder + "/" + name;
  const std::filesystem::file_type type = type_of(path);
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo) {
    return write({path, path}, bytes);  // as /dev/stdout
  }
  return save_all(folder, {{name, bytes}});
}

}  // namespace deuce::cli
