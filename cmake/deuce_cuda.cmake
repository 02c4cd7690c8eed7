# SPDX-License-Identifier: Apache-2.0
# Looks for a CUDA compiler; without one the CPU, reference and emulator backends still build.
set(DEUCE_HAS_CUDA OFF)
if(DEUCE_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES 90a-real)   # targets set their own; this only avoids a default
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(DEUCE_HAS_CUDA ON)
  endif()
endif()
if(DEUCE_HAS_CUDA)
  message(STATUS "Deuce: CUDA ${CMAKE_CUDA_COMPILER_VERSION} found")
else()
  message(STATUS "Deuce: no CUDA compiler (or DEUCE_CUDA=OFF): building cpu, reference and emulator only")
endif()
