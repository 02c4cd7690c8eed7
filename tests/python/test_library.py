# SPDX-License-Identifier: Apache-2.0
"""Which library is loaded, what is said when there is none or the wrong one, and what the package
tells about itself."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import deuce
import support
from deuce import _library

# What the call in the test of explain() amounts to.
CONFIG = dict(num_q_heads=4, num_kv_heads=2, head_dim_qk=16, head_dim_v=16, q_dtype="float32",
              kv_dtype="float32", max_batch=2, max_q_len=1, max_kv_len=32)
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def importing(library):
    """stderr of a fresh interpreter that imports deuce with DEUCE_LIBRARY set."""
    environment = {**os.environ, "DEUCE_LIBRARY": str(library)}
    environment.pop("LD_PRELOAD", None)
    run = subprocess.run([sys.executable, "-c", "import deuce"], env=environment,
                         capture_output=True, text=True)
    return run.stderr if run.returncode else ""


class Library(support.Case):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def touch(self, path, time):
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (time, time))
        return path

    def find(self, **environment):
        with mock.patch.object(_library, "CHECKOUT", self.folder), \
                mock.patch.object(_library, "PACKAGE", self.folder / "python" / "deuce"), \
                mock.patch.dict(os.environ, {"DEUCE_LIBRARY": "", **environment}):
            return _library.find_library()

    def test_the_newest_build_of_the_checkout_is_taken_and_sanitizer_builds_are_not(self):
        self.touch(self.folder / "build/cpu/lib/libdeuce.so", 1000)
        newest = self.touch(self.folder / "build/release/lib/libdeuce.so", 2000)
        self.touch(self.folder / "build/asan/lib/libdeuce.so", 3000)
        self.assertEqual(self.find(), newest)

    def test_the_library_inside_a_wheel_comes_before_any_build(self):
        self.touch(self.folder / "build/release/lib/libdeuce.so", 2000)
        inside = self.touch(self.folder / "python/deuce/lib/libdeuce.so", 1000)
        self.assertEqual(self.find(), inside)

    def test_the_environment_comes_first(self):
        self.touch(self.folder / "build/release/lib/libdeuce.so", 2000)
        named = self.touch(self.folder / "elsewhere/libdeuce.so", 1000)
        self.assertEqual(self.find(DEUCE_LIBRARY=str(named)), named)

    def test_no_library_says_where_it_looked_and_what_to_run(self):
        with self.assertRaisesRegex(ImportError, "cmake --preset release .*DEUCE_LIBRARY"):
            self.find()

    def test_a_named_library_that_does_not_exist(self):
        self.assertIn("DEUCE_LIBRARY is '/nowhere/libdeuce.so': there is no such file",
                      importing("/nowhere/libdeuce.so"))

    def test_a_file_that_is_no_library(self):
        path = self.folder / "libdeuce.so"
        path.write_text("not ELF")
        self.assertIn("cannot be loaded", importing(path))

    def compiled(self, source):
        (self.folder / "fake.c").write_text(source)
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", str(self.folder / "libdeuce.so"),
                        str(self.folder / "fake.c")], check=True)
        return self.folder / "libdeuce.so"

    @unittest.skipUnless(COMPILER, "no C compiler")
    def test_a_library_that_is_not_deuce(self):
        library = self.compiled("int other(void) { return 1; }")
        self.assertIn("is not a Deuce library", importing(library))

    @unittest.skipUnless(COMPILER, "no C compiler")
    def test_a_library_of_another_abi(self):
        error = importing(self.compiled("unsigned deuce_abi_version(void) { return 99; }"))
        self.assertIn("VersionMismatch", error)
        self.assertIn("has ABI version 99: this Python package needs 1", error)


class About(support.Case):

    def test_every_backend_has_an_answer(self):
        answers = deuce.backends()
        self.assertEqual(set(answers), {"cpu", "hopper", "blackwell", "emulator", "reference"})
        for name, answer in answers.items():
            self.assertTrue(answer == "ready" or name in answer, answer)
        self.assertEqual(answers["reference"], "ready")

    def test_the_include_folder_holds_the_header(self):
        self.assertTrue((pathlib.Path(deuce.get_include()) / "deuce" / "deuce.h").is_file())

    def test_the_cmake_folder_exists_or_the_refusal_says_how_to_make_it(self):
        try:
            folder = deuce.get_cmake_dir()
        except deuce.Unsupported as error:
            self.assertIn("cmake --install", str(error))
        else:
            self.assertTrue(any(pathlib.Path(folder).glob("deuce*onfig.cmake")))

    def test_shapes_are_accepted_by_check_and_their_neighbours_are_not(self):
        shapes = deuce.shapes()
        self.assertTrue(shapes)
        common = dict(num_q_heads=8, num_kv_heads=1, max_batch=1, max_q_len=1, max_kv_len=64)
        for shape in shapes[::37]:
            config = dict(common, backend=shape.backend, q_dtype=shape.q_dtype,
                          kv_dtype=shape.kv_dtype, head_dim_qk=shape.head_dim,
                          head_dim_v=shape.head_dim)
            for page in (0, shape.smallest_page):
                try:
                    deuce.check(page_size=page, **config)
                except deuce.NoDevice:
                    pass
        for backend in support.HOST_BACKENDS:
            self.assertTrue(any(row.backend == backend for row in shapes))

    def test_explain_of_a_config_and_of_a_call_agree_and_compute_nothing(self):
        support.needs_numpy()
        np = support.np
        for backend in support.HOST_BACKENDS:
            config = deuce.explain(**CONFIG, backend=backend)
            out = np.full((2, 1, 4, 16), 7, np.float32)
            q, k = np.ones((2, 1, 4, 16), np.float32), np.ones((2, 20, 2, 16), np.float32)
            call = deuce.explain(deuce.flash_attn_with_kvcache, q, k, k, cache_seqlens=20, out=out,
                                 backend=backend)
            self.assertEqual(call["backend"], backend)
            self.assertEqual(config["workspace"], call["workspace"])
            self.assertTrue((out == 7).all())
            deuce.flash_attn_with_kvcache(q, k, k, out=out, backend=backend)
            self.assertTrue((out == 1).all(), "the call after explain() has to compute again")

    def test_check_accepts_what_runs(self):
        self.assertIsNone(deuce.check(**CONFIG, backend="reference"))


if __name__ == "__main__":
    unittest.main()
