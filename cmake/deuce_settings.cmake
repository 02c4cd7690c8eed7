# SPDX-License-Identifier: Apache-2.0
# Settings shared by every target of this project.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

find_program(DEUCE_CCACHE ccache)
if(DEUCE_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${DEUCE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${DEUCE_CCACHE})
endif()

find_package(Threads REQUIRED)

add_library(deuce_settings INTERFACE)
target_compile_features(deuce_settings INTERFACE cxx_std_20 c_std_11)
target_link_libraries(deuce_settings INTERFACE Threads::Threads)
# fmt is used header-only: Debian ships no static libfmt, and libdeuce must depend on libc alone.
target_compile_definitions(deuce_settings INTERFACE FMT_HEADER_ONLY=1 DEUCE_VERSION="${PROJECT_VERSION}")
target_compile_options(deuce_settings INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion>
  $<$<AND:$<BOOL:${DEUCE_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)
if(DEUCE_SANITIZE)
  target_compile_options(deuce_settings INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${DEUCE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(deuce_settings INTERFACE -fsanitize=${DEUCE_SANITIZE})
  # With sanitizers GCC takes members of std::function for uninitialised, inside <regex>.
  target_compile_options(deuce_settings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-maybe-uninitialized>)
endif()
if(DEUCE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "DEUCE_FUZZ needs clang (preset fuzz)")
  endif()
  target_compile_options(deuce_settings INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
endif()
