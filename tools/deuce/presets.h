// SPDX-License-Identifier: Apache-2.0
// One layer's attention of models in use: the shapes that `deuce bench` knows by name.
// From the models' published configurations; "-tp8" is one of eight GPUs, "-window" a windowed
// layer.
#pragma once

#include <array>
#include <string_view>

namespace deuce::cli {

struct Preset {
  std::string_view name;
  int q_heads, kv_heads, head_dim;
  int window_left = -1;  // inclusive, so a model's "sliding window 128" is 127
  bool sinks = false;
  float softcap = 0;
};

inline constexpr std::array kPresets{
    Preset{"llama3-8b", 32, 8, 128},
    Preset{"llama3-70b", 64, 8, 128},
    Preset{"llama3-70b-tp8", 8, 1, 128},
    Preset{"qwen2.5-7b", 28, 4, 128},
    Preset{"qwen3-235b", 64, 4, 128},
    Preset{"qwen3.5-35b", 16, 2, 256},
    Preset{"gpt-oss-120b", 64, 8, 64, -1, true},
    Preset{"gpt-oss-120b-window", 64, 8, 64, 127, true},
    Preset{"gemma3-12b", 16, 8, 256},
    Preset{"gemma3-12b-window", 16, 8, 256, 1023},
    Preset{"gemma2-9b", 16, 8, 256, -1, false, 50},
    Preset{"glm-4.5", 96, 8, 128},
    Preset{"minimax-m2", 48, 8, 128},
    Preset{"glm4-32b", 48, 2, 128},
};

}  // namespace deuce::cli
