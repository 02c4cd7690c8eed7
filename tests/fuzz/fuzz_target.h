// SPDX-License-Identifier: Apache-2.0
// What a fuzz target offers: the function libFuzzer calls, and seeds to start from.
// Both drivers use it: libFuzzer itself, and replay_main.cpp in builds without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// One input; returns 0 or aborts. Must not depend on earlier inputs.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t bytes);

/// Valid inputs that mutation starts from.
std::vector<std::string> fuzz_seeds();
