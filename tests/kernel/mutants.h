// SPDX-License-Identifier: Apache-2.0
// Mutants: the reference backend run with one wrong argument, or with one damaged result. Each
// stands for a mistake that libraries of this kind have made; a property that cannot tell a mutant
// from the real thing is not a property.
#pragma once

#include <vector>

#include "support/subject.h"

namespace deuce::testing {

/// Wrong arguments: what the mutated field means is lost, everything else is right.
std::vector<Subject> argument_mutants();

/// Damaged results: written in the wrong place, not at all, or with the wrong neutral element.
std::vector<Subject> result_mutants();

}  // namespace deuce::testing
