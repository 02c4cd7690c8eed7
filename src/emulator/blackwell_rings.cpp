// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernel with K/V rings of 2 to 6 tiles, for explorations: small rings wrap within
// few blocks of keys.
#include "emulator/blackwell_variant.h"

namespace deuce::emulator {

std::vector<BlackwellVariant> blackwell_variants_rings() { return ring_variants<1>(); }

}  // namespace deuce::emulator
