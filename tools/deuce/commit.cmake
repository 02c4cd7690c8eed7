# SPDX-License-Identifier: Apache-2.0
# Writes the commit that is being built to a header, at each build, only if it changed.
# Run as: cmake -DSOURCE=<project> -DOUTPUT=<header> -P commit.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define DEUCE_COMMIT \"@commit@\"\n" @ONLY)
