// SPDX-License-Identifier: Apache-2.0
// Files under temporary names until all are complete.
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

/// Devices and pipes are written in place.
Place place_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool in_place = std::filesystem::exists(status) && !std::filesystem::is_directory(status) &&
                        !std::filesystem::is_regular_file(status);
  return {path, in_place ? path : path + ".partial"};
}

void remove(const std::vector<Place>& places) {
  std::error_code error;
  for (const Place& place : places) {
    if (place.partial != place.path) std::filesystem::remove(place.partial, error);
  }
}

Status write(const Place& place, const std::string& bytes) {
  std::ofstream file(place.partial, std::ios::binary);
  file << bytes;
  file.close();
  return file ? Status{} : failed(place.path, "cannot be written");
}

Status rename(const Place& place) {
  if (place.partial == place.path) return {};
  std::error_code error;
  std::filesystem::rename(place.partial, place.path, error);
  return error ? failed(place.path, error.message()) : Status{};
}

}  // namespace

Status save_all(const std::string& folder, const std::vector<OutputFile>& files) {
  InterruptHeld held;
  std::error_code error;
  const bool created = std::filesystem::create_directories(folder, error);
  if (error) return failed(folder, error.message());
  std::vector<Place> places;
  Status status;
  for (const OutputFile& file : files) {
    if (!status.ok() || held.asked()) break;
    places.push_back(place_of(folder + "/" + file.name));
    status = write(places.back(), file.bytes);
  }
  if (status.ok() && !held.asked()) {
    for (const Place& place : places) {
      if (status.ok()) status = rename(place);
    }
    if (status.ok()) {
      held.too_late();
      return {};
    }
  }
  remove(places);
  if (created) std::filesystem::remove(folder, error);  // only if it is empty
  return status;
}

Status save_in(const std::string& folder, const std::string& name, const std::string& bytes) {
  return save_all(folder, {{name, bytes}});
}

}  // namespace deuce::cli
