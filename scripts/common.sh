# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts of this folder: where the project is, how to speak, how to build a preset.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

# build PRESET [cmake arguments]: configure once more (cheap when nothing changed) and build.
build() {
  local preset=$1; shift
  say "build: preset $preset"
  cmake --preset "$preset" "$@" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log"; return 1; }
  grep '^-- Deuce:' "build/$preset.configure.log" || true
  cmake --build --preset "$preset" -j "$(nproc)" -- --quiet
}
