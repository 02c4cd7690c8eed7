# SPDX-License-Identifier: Apache-2.0
# What is installed: library, headers, a relocatable CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/deuce)

# Components are the backends that were compiled in; `cuda` stands for either GPU kernel.
get_target_property(definitions deuce_core COMPILE_DEFINITIONS)
set(DEUCE_COMPONENTS)
foreach(backend cpu reference emulator hopper blackwell)
  string(TOUPPER ${backend} upper)
  if("${definitions}" MATCHES "DEUCE_WITH_${upper}")
    list(APPEND DEUCE_COMPONENTS ${backend})
  endif()
endforeach()
if("hopper" IN_LIST DEUCE_COMPONENTS OR "blackwell" IN_LIST DEUCE_COMPONENTS)
  list(APPEND DEUCE_COMPONENTS cuda)
endif()

install(TARGETS deuce EXPORT deuce_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/deuce DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT deuce_targets NAMESPACE deuce:: FILE deuce-targets.cmake DESTINATION ${package_dir})

configure_package_config_file(cmake/deuce-config.cmake.in ${CMAKE_BINARY_DIR}/deuce-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/deuce-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/deuce-config.cmake ${CMAKE_BINARY_DIR}/deuce-config-version.cmake
  DESTINATION ${package_dir})

# The way from the .pc file to the prefix depends on how deep the library folder lies.
file(RELATIVE_PATH DEUCE_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/deuce.pc.in ${CMAKE_BINARY_DIR}/deuce.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/deuce.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
