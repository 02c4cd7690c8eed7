# SPDX-License-Identifier: Apache-2.0
# The Python that tests run with: the project's own environment (scripts/install_packages) if there.
if(NOT DEUCE_PYTHON)
  if(EXISTS ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
    set(DEUCE_PYTHON ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
  else()
    find_package(Python3 COMPONENTS Interpreter)
    set(DEUCE_PYTHON ${Python3_EXECUTABLE})
  endif()
endif()
message(STATUS "Deuce: Python for tests: ${DEUCE_PYTHON}")
