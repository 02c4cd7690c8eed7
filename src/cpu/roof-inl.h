// SPDX-License-Identifier: Apache-2.0
// The two limits of a CPU for this backend, as loops: bytes read and multiply-adds. Included by
// kernels_*.cpp after the vector operations, once per instruction set.

/// Reads all lines; the result only keeps the loads alive.
float read_lines(const std::byte* from, std::size_t bytes) {
  const auto* values = reinterpret_cast<const float*>(from);
  Vec sums[4] = {broadcast(0), broadcast(0), broadcast(0), broadcast(0)};
  for (std::size_t i = 0; i + 4 * kLanes <= bytes / sizeof(float); i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) sums[j] = max(sums[j], load(values + i + j * kLanes));
  }
  float lanes[kLanes];
  store(max(max(sums[0], sums[1]), max(sums[2], sums[3])), lanes);
  return lanes[0];
}

/// `rounds` times kMultiplyAdds multiply-adds of kLanes floats, independent enough for any
/// pipeline.
float multiply_adds(int64_t rounds) {
  Vec sums[kMultiplyAdds];
  for (Vec& sum : sums) sum = broadcast(1);
  const Vec factor = broadcast(0.999F), term = broadcast(0.001F);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 10
    for (int i = 0; i < kMultiplyAdds; ++i) sums[i] = mul_add(sums[i], factor, term);
  }
  for (int i = 1; i < kMultiplyAdds; ++i) sums[0] = add(sums[0], sums[i]);
  float lanes[kLanes];
  store(sums[0], lanes);
  return lanes[0];
}
