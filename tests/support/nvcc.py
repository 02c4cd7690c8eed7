# SPDX-License-Identifier: Apache-2.0
"""nvcc for tests that look at what it makes of one GPU kernel, with the flags of the library's build."""
import argparse
import pathlib
import subprocess
import sys


def parser():
    """The arguments that all these tests take; each adds its own."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--nvcc", required=True)
    arguments.add_argument("--source", type=pathlib.Path, required=True)
    arguments.add_argument("--include", type=pathlib.Path, required=True)
    arguments.add_argument("--kernel", required=True)
    return arguments


def compile_kernel(options, source, flags):
    """Compiles options.kernel of a source tree; ends the test where nvcc fails."""
    run = subprocess.run([options.nvcc, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr",
                          "-I", source, "-I", options.include, *flags,
                          source / "gpu" / "kernels" / f"{options.kernel}.cu"],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{options.kernel}: nvcc failed\n{run.stderr}")


def image_of(arch):
    """Flags for machine code of one architecture."""
    return ["-gencode", f"arch=compute_{arch},code=sm_{arch}", "-cubin"]
