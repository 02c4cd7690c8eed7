// SPDX-License-Identifier: Apache-2.0
// Status codes and the sentence behind the last error.
#include <gtest/gtest.h>

#include "deuce/deuce.h"

namespace {

TEST(LastError, NamesTheFieldOfTheLastCallAndIsEmptyAfterSuccess) {
  EXPECT_EQ(deuce_decode_check(nullptr), DEUCE_INVALID_ARGUMENT);
  EXPECT_STREQ(deuce_last_error(), "config is null");
  EXPECT_STREQ(deuce_last_error_field(), "config");
}

}  // namespace
