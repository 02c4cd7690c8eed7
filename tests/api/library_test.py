# SPDX-License-Identifier: Apache-2.0
"""The shared library as a file: what it exports, what it needs, and that it loads without a driver.

DEUCE_LIBRARY names it. The list of symbols is the list of functions in deuce.h.
"""
import ctypes
import os
import pathlib
import platform
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ["DEUCE_LIBRARY"]
HEADER = (ROOT / "include/deuce/deuce.h").read_text()


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Library(unittest.TestCase):
    def test_exports_are_the_functions_of_the_header(self):
        declared = set(re.findall(r"^DEUCE_API [^(]*?\b(deuce_\w+)\(", HEADER, re.MULTILINE))
        self.assertGreater(len(declared), 10)
        exported = {line.split()[-1] for line in
                    output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()}
        self.assertEqual(exported, declared)

    def test_needs_libc_and_the_loader_only(self):
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", LIBRARY))
        allowed = re.compile(r"libc\.so\.6|libm\.so\.6|ld-linux.*\.so\.\d")  # libm is part of libc
        self.assertEqual([name for name in needed if not allowed.fullmatch(name)], [])

    def test_has_no_search_path_and_no_executable_stack(self):
        dynamic = output_of("readelf", "-d", LIBRARY)
        self.assertNotRegex(dynamic, "RPATH|RUNPATH")
        stack = [line for line in output_of("readelf", "-W", "-l", LIBRARY).splitlines() if "GNU_STACK" in line]
        self.assertEqual(len(stack), 1)
        self.assertNotIn("E", stack[0].split()[-2])

    def test_loads_and_answers_without_a_gpu_driver(self):
        # In a process of its own, which must not have opened a driver library afterwards.
        code = ("import ctypes, os\n"
                f"library = ctypes.CDLL({LIBRARY!r})\n"
                "library.deuce_version.restype = ctypes.c_char_p\n"
                "assert library.deuce_version()\n"
                "assert 'libcuda.so' not in open('/proc/self/maps').read()\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "LD_BIND_NOW": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)

    @unittest.skipUnless(platform.machine() == "x86_64", "looks for an instruction of x86")
    def test_cpu_kernels_fetch_ahead(self):
        # A compiler that drops the fetches changes no result and halves the speed.
        code = output_of("objdump", "-d", "--no-show-raw-insn", LIBRARY)
        self.assertGreater(len(re.findall(r"\bprefetcht1\b", code)), 1000)

    def test_version_is_that_of_the_project(self):
        library = ctypes.CDLL(LIBRARY)
        library.deuce_version.restype = ctypes.c_char_p
        project = re.search(r"project\(deuce VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())
        self.assertEqual(library.deuce_version().decode(), project.group(1))
        abi = re.search(r"DEUCE_ABI_VERSION = (\d+)", HEADER)
        self.assertEqual(library.deuce_abi_version(), int(abi.group(1)))


if __name__ == "__main__":
    unittest.main()
