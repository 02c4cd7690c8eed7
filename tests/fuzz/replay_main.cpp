// SPDX-License-Identifier: Apache-2.0
// Driver for builds without libFuzzer: a fixed number of mutations of the target's seeds.
// The generator is seeded by a constant, so a failure repeats; its number is on the last line.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "fuzz_target.h"

namespace {

constexpr int kInputs = 20'000;

/// One to eight small changes, the kinds that parsers get wrong: a byte, a bit, a cut, a repeat.
void mutate(std::string& input, std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t changes = 1 + below(8); changes > 0 && !input.empty(); --changes) {
    const std::size_t at = below(input.size());
    switch (below(6)) {
      case 0: input[at] = static_cast<char>(random()); break;
      case 1: input[at] = static_cast<char>(input[at] ^ (1 << below(8))); break;
      case 2: input.resize(at); break;
      case 3: input.erase(at, 1 + below(8)); break;
      case 4: input.insert(at, input.substr(below(input.size()), 1 + below(16))); break;
      default: input[at] = "{}[]\",:0-9\\"[below(11)]; break;
    }
  }
}

}  // namespace

int main() {
  std::mt19937 random(1);
  const std::vector<std::string> seeds = fuzz_seeds();
  for (int i = 0; i < kInputs; ++i) {
    std::string input = seeds[random() % seeds.size()];
    mutate(input, random);
    // A block of exactly this size, so that the sanitizer sees a read one byte too far.
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%d inputs\n", kInputs);
  return 0;
}
