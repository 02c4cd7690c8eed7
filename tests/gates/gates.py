# SPDX-License-Identifier: Apache-2.0
"""Gates on the source itself: where things may stand, what may not be in the tree, formatting.

Run by ctest, or by hand:  python3 tests/gates/gates.py [-v] [Gates.test_name]
DEUCE_CXX names the compiler for the header gates (default g++), DEUCE_CC the C compiler.
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
CXX = os.environ.get("DEUCE_CXX", "g++")
CC = os.environ.get("DEUCE_CC", "gcc")
SOURCE_SUFFIXES = {".h", ".hpp", ".cpp", ".c", ".cu", ".cuh", ".py"}
CODE_SUFFIXES = SOURCE_SUFFIXES - {".py"}


def tracked():
    """Files of the project: what git tracks, or every file of an exported archive."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
        names = [name for name in names if not name.startswith(("build/", "dist/", "."))]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


FILES = tracked()


def under(*folders, suffixes=CODE_SUFFIXES):
    prefixes = tuple(f"{ROOT}/{folder}/" for folder in folders)
    return [p for p in FILES if str(p).startswith(prefixes) and p.suffix in suffixes]


def hits(paths, pattern, allowed=()):
    """Lines matching pattern, as "file:line: text", outside the allowed folders."""
    expression = re.compile(pattern)
    found = []
    for path in paths:
        name = str(path.relative_to(ROOT))
        if name.startswith(tuple(allowed)):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if expression.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    return found


class Gates(unittest.TestCase):
    def none(self, found, rule):
        self.assertFalse(found, f"{rule}:\n  " + "\n  ".join(found[:20]))

    def test_asm_stands_in_gpu_ptx_only(self):
        found = hits(under("src", "tools", "include"), r"\b(asm|__asm|__asm__)\b", ["src/gpu/ptx/"])
        barrier = re.compile(r"^src/cpu/(fetch|dots)-inl\.h:\d+:.*asm volatile\(\"\" :")  # emits no instruction
        self.none([line for line in found if not barrier.search(line)], "asm outside src/gpu/ptx")

    def test_cuda_arch_stands_in_gpu_only(self):
        self.none(hits(under("src", "tools", "include"), r"__CUDA_ARCH__", ["src/gpu/"]), "__CUDA_ARCH__ outside src/gpu")

    def test_portable_folders_include_no_cuda_header(self):
        found = hits(under("src/kernel", "src/plan", "src/emulator"), r"#\s*include\s*<cuda")
        self.none(found, "CUDA header in a portable folder")

    def test_kernel_source_includes_no_os_header(self):
        os_headers = r"#\s*include\s*<(unistd|sys/|pthread|thread|mutex|iostream|cstdio|stdio|windows)"
        self.none(hits(under("src/kernel"), os_headers), "OS header in src/kernel")
        self.none(hits(under("src/kernel"), r"if.*emulating"), "a branch on the emulator in src/kernel")

    def test_dependencies_point_one_way(self):
        layers = {"kernel": ["plan", "api", "gpu", "emulator", "cpu", "reference", "io"],
                  "plan": ["api"], "reference": ["api", "cpu", "gpu", "emulator"],
                  "cpu": ["api", "gpu", "emulator"], "emulator": ["api", "gpu", "cpu"],
                  "trace": ["api", "gpu", "cpu", "reference", "emulator", "io"]}
        found = []
        for folder, forbidden in layers.items():
            pattern = rf'#\s*include\s*"({"|".join(forbidden)})/'
            found += hits(under(f"src/{folder}"), pattern, ["src/api/backends.cpp"])
        found += hits(under("src/kernel"), r'#\s*include\s*"trace/(?!event\.h)')  # the format alone
        self.none(found, "an include against the direction of the layers")

    def test_few_macros_in_src(self):
        names = set()
        for line in hits(under("src"), r"^\s*#\s*define\s+\w+"):
            name = re.search(r"define\s+(\w+)", line).group(1)
            if not re.fullmatch(r"\w+_(H|HPP|CUH)_?|HWY_TARGET_INCLUDE|DEUCE_\w*_TOGGLE", name):
                names.add(name)
        self.assertLessEqual(len(names), 4, f"macros in src: {sorted(names)}")

    def test_every_source_file_names_its_licence_and_says_what_it_is(self):
        for path in FILES:
            if path.suffix not in SOURCE_SUFFIXES and path.name != "CMakeLists.txt" and path.suffix != ".cmake":
                continue
            head = path.read_text(errors="replace").splitlines()[:3]
            if not head:
                continue
            spdx = next((n for n, line in enumerate(head) if "SPDX-License-Identifier: Apache-2.0" in line), None)
            self.assertIsNotNone(spdx, f"no SPDX line: {path.relative_to(ROOT)}")
            lines = path.read_text(errors="replace").splitlines()
            if len(lines) == spdx + 1 or "src/gpu/kernels" in path.as_posix():
                continue  # a package marker; one instantiation, which the name of the file says
            says = re.match(r'(//|#|/?\*+|"""|::)\s*(.+)', lines[spdx + 1].strip())
            self.assertTrue(says and len(says[2].split()) >= 3, f"line two does not say what it is: {path.relative_to(ROOT)}")

    def test_no_commented_out_code_and_no_bare_todo(self):
        code = under("src", "tools", "include", "tests", "examples", "bench")
        self.none(hits(code, r"^\s*// ?(?! )[\w:>.\-\[\]()*& ]+(\(.*\)|=[^=].*);\s*$"), "commented-out code")
        self.none(hits(code, r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))"), "a TODO without an issue number")

    def test_no_runs_of_ten_equal_lines_in_src(self):
        seen, found = {}, []
        for path in under("src"):
            lines = [(n, text.strip()) for n, text in enumerate(path.read_text().splitlines(), 1)]
            lines = [(n, text) for n, text in lines if text and not text.startswith(("//", "#include"))]
            for start in range(len(lines) - 9):
                window = tuple(text for _, text in lines[start:start + 10])
                if sum(len(text) > 3 for text in window) < 8:
                    continue
                place = f"{path.relative_to(ROOT)}:{lines[start][0]}"
                if window in seen:
                    found.append(f"{seen[window]} and {place}")
                seen.setdefault(window, place)
        self.none(found, "runs of ten equal lines")

    def test_tree_holds_no_absolute_paths_and_no_large_or_generated_files(self):
        text = [p for p in FILES if p.suffix in SOURCE_SUFFIXES | {".md", ".txt", ".cmake", ".json", ".toml", ".sh", ""}]
        self.none(hits(text, r"(^|[\s\"'=(])/(work|home|root|Users|farm)/\w", ["tests/gates/"]), "an absolute path of a machine")
        large = [str(p.relative_to(ROOT)) for p in FILES if p.stat().st_size > 2 * 1024 * 1024]
        self.none(large, "a file above 2 MB")
        built = [str(p.relative_to(ROOT)) for p in FILES if p.suffix in {".o", ".so", ".a", ".whl", ".cubin", ".ptx", ".pyc"}]
        self.none(built, "a built file in git")

    def test_clang_format_is_clean(self):
        if not shutil.which("clang-format"):
            self.skipTest("clang-format is not installed")
        code = [str(p) for p in under("src", "tools", "include", "tests", "examples", "bench")]
        run = subprocess.run(["clang-format", "--dry-run", "-Werror", *code], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr[:3000])

    def test_every_header_compiles_alone(self):
        headers = [p for p in under("src", "tools", "include") if p.suffix in {".h", ".hpp"}]
        # A header that a source includes first has compiled alone there, in the build itself.
        firsts = [re.search(r'#\s*include\s*(.*)', p.read_text()) for p in under("src", "tools", suffixes={".cpp"})]
        proven = {first.group(1) for first in firsts if first}
        headers = [p for p in headers if f'"{p.relative_to(ROOT / p.relative_to(ROOT).parts[0])}"' not in proven]
        headers = [p for p in headers if not p.name.endswith("-inl.h")]  # included once per SIMD target

        def compile_alone(header):
            flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY=1", '-DDEUCE_VERSION="0"',
                     "-I", str(ROOT / "include"), "-I", str(ROOT / "src"), "-I", str(ROOT / "tools"), "-x", "c++", "-"]
            if "src/gpu/" in str(header):
                return None  # compiled with nvcc by the build itself
            run = subprocess.run([CXX, *flags], input=f'#include "{header}"\n', capture_output=True, text=True)
            return None if run.returncode == 0 else f"{header.relative_to(ROOT)}: {run.stderr[:400]}"

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            self.none([f for f in pool.map(compile_alone, headers) if f], "a header that does not compile alone")

    def test_kernel_source_compiles_with_clang(self):
        """g++ and nvcc compile the kernels in the build; clang++ instantiates them here."""
        if not shutil.which("clang++"):
            self.skipTest("clang++ is not installed")
        flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror",
                 "-DFMT_HEADER_ONLY=1", "-I", str(ROOT / "include"), "-I", str(ROOT / "src")]
        for name in ("blackwell_hd64", "blackwell_hd128", "blackwell_hd128_replicas"):
            run = subprocess.run(["clang++", *flags, str(ROOT / f"src/emulator/{name}.cpp")], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr[:2000])

    def test_public_header_is_c11_and_cxx17(self):
        header = ROOT / "include/deuce/deuce.h"
        for compiler, flags in ((CC, ["-std=c11", "-x", "c"]), (CXX, ["-std=c++17", "-x", "c++"])):
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run([compiler, *flags, "-pedantic", "-Wall", "-Wextra", "-Wpadded", "-Werror", "-c", "-", "-o", f"{folder}/o"],
                                     input=f'#include "{header}"\n', capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr[:2000])

    def test_report_of_long_files(self):
        """A report, not a refusal: the files that deserve a look for a natural seam."""
        sizes = collections.Counter({str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in under("src", "tools", "include")})
        for name, lines in sizes.most_common(5):
            print(f"  {lines:5d} {name}", file=sys.stderr)
        self.assertTrue(sizes)


if __name__ == "__main__":
    unittest.main()
