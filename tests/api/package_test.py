# SPDX-License-Identifier: Apache-2.0
"""The installed package, from a prefix that was moved after installing: find_package, pkg-config,
version and component rules, and the source tree as a subproject. Builds examples/consumer.

DEUCE_BUILD names the build folder, DEUCE_CMAKE and DEUCE_CXX the tools of that build.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = os.environ["DEUCE_BUILD"]
CMAKE = os.environ["DEUCE_CMAKE"]
CXX = os.environ["DEUCE_CXX"]
EXAMPLE = ROOT / "examples/consumer"


def run(*command, environment=None, check=True):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    if check and done.returncode != 0:
        raise AssertionError(f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="deuce_package_"))
        run(CMAKE, "--install", BUILD, "--prefix", cls.folder / "installed")
        cls.prefix = cls.folder / "moved" / "prefix"
        cls.prefix.parent.mkdir()
        shutil.move(cls.folder / "installed", cls.prefix)
        cls.library = next(cls.prefix.glob("lib*/**/libdeuce.so")).parent

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def configure(self, source, name, *options, check=True):
        return run(CMAKE, "-S", source, "-B", self.folder / name, f"-DCMAKE_PREFIX_PATH={self.prefix}",
                   f"-DCMAKE_CXX_COMPILER={CXX}", *options, check=check)

    def project(self, name, find, languages="NONE"):
        """A project of a few lines that looks for the package in its own way."""
        source = self.folder / f"{name}_source"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(p LANGUAGES {languages})\n{find}\n")
        return self.configure(source, name, check=False)

    def expect_result(self, program, environment=None):
        self.assertEqual(run(program, environment=environment).stdout, "out[0] = 1.500\n")

    def test_find_package_builds_and_runs_the_example(self):
        self.configure(EXAMPLE, "by_cmake")
        run(CMAKE, "--build", self.folder / "by_cmake")
        self.expect_result(self.folder / "by_cmake/decode")

    def test_pkg_config_builds_and_runs_the_example(self):
        if not shutil.which("pkg-config"):
            self.skipTest("pkg-config is not installed")
        flags = run("pkg-config", "--cflags", "--libs", "deuce",
                    environment={"PKG_CONFIG_PATH": str(self.library / "pkgconfig")}).stdout.split()
        run(CXX, "-std=c++17", "-Wall", "-Wextra", "-Werror", EXAMPLE / "decode.cpp", *flags,
            "-o", self.folder / "by_pkg_config")
        self.expect_result(self.folder / "by_pkg_config", {"LD_LIBRARY_PATH": str(self.library)})

    def test_pkg_config_file_reaches_the_prefix_from_a_deeper_library_folder(self):
        run(CMAKE, "-S", ROOT, "-B", self.folder / "deep", "-DCMAKE_INSTALL_LIBDIR=lib/some-arch-linux",
            "-DDEUCE_CUDA=OFF", "-DDEUCE_TESTS=OFF", "-DDEUCE_TOOLS=OFF", f"-DCMAKE_CXX_COMPILER={CXX}")
        lines = (self.folder / "deep/deuce.pc").read_text().splitlines()
        self.assertIn("libdir=${prefix}/lib/some-arch-linux", lines)
        here = pathlib.PurePosixPath("/opt/lib/some-arch-linux/pkgconfig")
        way = next(line for line in lines if line.startswith("prefix=")).removeprefix("prefix=${pcfiledir}/")
        self.assertEqual(os.path.normpath(here / way), "/opt")

    def test_no_file_of_the_package_names_a_build_or_install_folder(self):
        for path in self.prefix.rglob("*"):
            if path.suffix in {".cmake", ".pc", ".h", ".hpp"}:
                text = path.read_text()
                self.assertNotIn(str(ROOT), text, path)
                self.assertNotIn(str(self.folder), text, path)

    def test_same_minor_version_is_accepted_and_another_refused(self):
        self.assertEqual(self.project("same", "find_package(deuce 0.1 CONFIG REQUIRED)").returncode, 0)
        for version in ("0.2", "1.0"):
            other = self.project(f"other_{version}", f"find_package(deuce {version} CONFIG REQUIRED)")
            self.assertNotEqual(other.returncode, 0)
            self.assertIn("0.1.0", other.stderr)

    def test_components_are_the_backends_of_the_library(self):
        found = self.project("present", "find_package(deuce CONFIG REQUIRED COMPONENTS reference)")
        self.assertEqual(found.returncode, 0, found.stderr)
        missing = self.project("absent", "find_package(deuce CONFIG REQUIRED COMPONENTS abacus)")
        self.assertNotEqual(missing.returncode, 0)
        self.assertIn("this Deuce has no abacus, only: ", " ".join(missing.stderr.split()))  # CMake breaks lines

    def test_source_tree_serves_as_a_subproject(self):
        found = self.project("subproject", f"""
set(DEUCE_CUDA OFF)
add_subdirectory({ROOT} deuce)
file(WRITE ${{CMAKE_BINARY_DIR}}/main.cpp "int main() {{}}")
add_executable(program ${{CMAKE_BINARY_DIR}}/main.cpp)
target_link_libraries(program PRIVATE deuce::deuce)
if(TARGET test_api)
  message(FATAL_ERROR "a subproject builds no tests")
endif()""", languages="C CXX")
        self.assertEqual(found.returncode, 0, found.stderr)


if __name__ == "__main__":
    unittest.main()
