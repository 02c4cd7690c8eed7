// SPDX-License-Identifier: Apache-2.0
// Which instruction set the CPU backend uses: the best one that the CPU has, or the one a test asks
// for. Decided when a plan is made and never changed for that plan.
#include <atomic>
#include <cstring>
#include <vector>

#include "cpu/kernels.h"

namespace deuce::cpu {
namespace {

std::atomic<const Kernels*>& forced() {
  static std::atomic<const Kernels*> kernels{nullptr};
  return kernels;
}

}  // namespace

std::span<const Kernels* const> available_kernels() {
  static const std::vector<const Kernels*> list = [] {
    std::vector<const Kernels*> all;
    if (dot_kernels() != nullptr) all.push_back(dot_kernels());
    for (const Kernels* kernels : simd_kernels()) all.push_back(kernels);
    all.push_back(&scalar_kernels());
    return all;
  }();
  return list;
}

namespace {
[[maybe_unused]] const auto kMadeAtLoad = available_kernels();  // why: api/backends.cpp
}  // namespace

const Kernels& chosen_kernels() {
  const Kernels* choice = forced();
  return choice != nullptr ? *choice : *available_kernels().front();
}

#ifndef DEUCE_CPU_DOTS
const Kernels* dot_kernels() { return nullptr; }
#endif

bool force_kernels(const char* name) {
  if (name == nullptr) {
    forced() = nullptr;
    return true;
  }
  for (const Kernels* kernels : available_kernels()) {
    if (std::strcmp(kernels->name, name) != 0) continue;
    forced() = kernels;
    return true;
  }
  return false;
}

}  // namespace deuce::cpu
