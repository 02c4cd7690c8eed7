# SPDX-License-Identifier: Apache-2.0
# libdeuce.so: the C ABI and nothing else is visible; libstdc++ is linked statically.
add_library(deuce SHARED $<TARGET_OBJECTS:deuce_core>)
add_library(deuce::deuce ALIAS deuce)
target_link_libraries(deuce PRIVATE deuce_core)   # for what the objects themselves link
target_include_directories(deuce PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(deuce PRIVATE
  -Wl,--exclude-libs,ALL -Wl,--version-script,${CMAKE_CURRENT_SOURCE_DIR}/cmake/deuce.map
  -Wl,--no-undefined -static-libstdc++ -static-libgcc)
set_target_properties(deuce PROPERTIES
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/deuce.map LINKER_LANGUAGE CXX)
if(NOT SKBUILD)  # a wheel has no symbolic links: it would carry one copy for each name
  set_target_properties(deuce PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
endif()
