# SPDX-License-Identifier: Apache-2.0
"""The wheel, built by the backend that pip would call, unpacked into a fresh environment and used
from another folder. Skipped where scikit-build-core is not installed (scripts/install_packages)."""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import support

# Rough upper end of a wheel without GPU kernels, so that nothing large slips in.
SIZE_BUDGET_BYTES = 8 << 20
USE = """
import array, json, deuce
q = memoryview(array.array("f", [1.0] * 16)).cast("B").cast("f", (1, 1, 2, 8))
k = memoryview(array.array("f", [1.0] * 24)).cast("B").cast("f", (1, 3, 1, 8))
out = deuce.flash_attn_with_kvcache(q, k, k, backend="reference")
print(json.dumps({"out": out[0, 0, 1, 7], "library": str(deuce._library.library_path),
                  "include": deuce.get_include(), "cmake": deuce.get_cmake_dir(),
                  "version": deuce.__version__}))
"""


def setUpModule():
    if importlib.util.find_spec("scikit_build_core") is None:
        raise unittest.SkipTest("scikit-build-core is not installed")


class Wheel(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        # The CPU side is enough here; the folder is kept, so that a second run compiles nothing.
        settings = {"build-dir": os.environ.get("DEUCE_WHEEL_BUILD", str(cls.folder / "build")),
                    "cmake.define.DEUCE_CUDA": "OFF",
                    "cmake.define.DEUCE_WERROR": "ON"}  # the flags of the presets: ccache has them
        code = ("import sys, json; from scikit_build_core.build import build_wheel; "
                "print(build_wheel(sys.argv[1], json.loads(sys.argv[2])))")
        built = subprocess.run([sys.executable, "-c", code, str(cls.folder), json.dumps(settings)],
                               cwd=support.ROOT, capture_output=True, text=True)
        if built.returncode:
            raise AssertionError(f"{built.stdout[-3000:]}\n{built.stderr[-3000:]}")
        (cls.path,) = cls.folder.glob("*.whl")

    def test_one_wheel_for_every_python_of_the_platform(self):
        self.assertRegex(self.path.name, r"^deuce-\d+\.\d+\.\d+-py3-none-(many)?linux_\w+\.whl$")

    def test_it_holds_the_library_once_with_headers_and_cmake_files_and_no_tests(self):
        names = zipfile.ZipFile(self.path).namelist()
        libraries = [name for name in names if "libdeuce" in name]
        self.assertEqual(libraries, ["deuce/lib/libdeuce.so"])
        for wanted in ("deuce/include/deuce/deuce.h", "deuce/include/deuce/deuce.hpp",
                       "deuce/lib/cmake/deuce/deuce-config.cmake", "deuce/__init__.py"):
            self.assertIn(wanted, names)
        strange = [name for name in names if not re.match(r"deuce(/|-[\d.]+\.dist-info/)", name)]
        self.assertEqual(strange, [])
        self.assertFalse([name for name in names
                          if "test" in name or name.endswith((".a", ".pyc"))])
        self.assertLess(self.path.stat().st_size, SIZE_BUDGET_BYTES)

    def test_installed_in_a_fresh_environment_it_works_from_another_folder(self):
        environment = self.folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)],
                       check=True)
        (site,) = environment.glob("lib/python*/site-packages")
        zipfile.ZipFile(self.path).extractall(site)
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("PYTHONPATH", "DEUCE_LIBRARY")}
        answer = json.loads(subprocess.run(
            [str(environment / "bin" / "python"), "-c", USE], cwd="/", env=clean, check=True,
            capture_output=True, text=True).stdout)
        self.assertEqual(answer["out"], 1.0)
        self.assertEqual(answer["version"], self.path.name.split("-")[1])
        for name in ("library", "include", "cmake"):
            self.assertTrue(answer[name].startswith(str(site)), answer[name])

    def test_metadata_and_sdist_need_cmake_but_no_compiler(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "cmake").symlink_to(shutil.which("cmake"))
        code = ("import sys; from scikit_build_core.build import build_sdist, "
                "prepare_metadata_for_build_wheel as metadata; metadata(sys.argv[1]); "
                "build_sdist(sys.argv[1])")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-c", code, folder], cwd=support.ROOT, check=True,
                           env={**os.environ, "PATH": str(tools)}, capture_output=True)
            written = [path.name for path in pathlib.Path(folder).iterdir()]
        self.assertTrue(any(name.endswith(".dist-info") for name in written), written)
        self.assertTrue(any(name.endswith(".tar.gz") for name in written), written)


if __name__ == "__main__":
    unittest.main()
