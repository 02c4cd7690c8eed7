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
  # CMake 3.25 knows no C++20 flag for nvcc 13: CMAKE_CUDA_STANDARD 20 would silently mean C++17.
  set(DEUCE_CUDA_OPTIONS -std=c++20 --expt-relaxed-constexpr
      -Werror=cross-execution-space-call,reorder,default-stream-launch)
  message(STATUS "Deuce: CUDA ${CMAKE_CUDA_COMPILER_VERSION} found")
else()
  message(STATUS "Deuce: no CUDA compiler (or DEUCE_CUDA=OFF): building cpu, reference and emulator only")
endif()
