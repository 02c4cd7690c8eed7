// SPDX-License-Identifier: Apache-2.0
// deuce.hpp against a library of another ABI: it says so and hands it no struct.
// The C functions below stand in for that library, so this program links none.
#include <cstdio>
#include <cstring>

#include "deuce/deuce.hpp"

namespace {
int g_calls_with_structs = 0;
}  // namespace

extern "C" {
uint32_t deuce_abi_version(void) { return 99; }
const char* deuce_version(void) { return "7.0.0"; }
const char* deuce_last_error(void) { return ""; }
const char* deuce_last_error_field(void) { return ""; }
const char* deuce_status_string(deuce_status) { return "version mismatch"; }
void deuce_decode_plan_destroy(deuce_decode_plan) {}
deuce_status deuce_decode_plan_create(const deuce_decode_config*, deuce_decode_plan*) {
  ++g_calls_with_structs;
  return DEUCE_OK;
}
deuce_status deuce_decode_workspace_size(const deuce_decode_config*, size_t*, size_t*) {
  ++g_calls_with_structs;
  return DEUCE_OK;
}
}

int main() {
  const char* expected =
      "this program was compiled for Deuce ABI 1, the loaded library 7.0.0 has ABI 99";
  try {
    const deuce::DecodePlan plan(deuce::make_config());
    std::fprintf(stderr, "a plan was made\n");
    return 1;
  } catch (const deuce::Error& error) {
    if (error.status() == DEUCE_VERSION_MISMATCH && std::strcmp(error.what(), expected) == 0 &&
        g_calls_with_structs == 0) {
      return 0;
    }
    std::fprintf(stderr, "status %d: %s\n", error.status(), error.what());
    return 1;
  }
}
