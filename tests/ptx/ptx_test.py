# SPDX-License-Identifier: Apache-2.0
"""Compiles one Blackwell kernel to PTX, whose tcgen05, TMA and register lines must be those of
expected.txt; and to an image of one architecture, if asked for, which must not spill."""
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import nvcc

EXPECTED = pathlib.Path(__file__).with_name("expected.txt")
# What is counted: a name, and the PTX line it stands for.
FORMS = {
    "mma_ss": r"tcgen05\.mma\.cta_group::1\.kind::f16 \[%r\d+\], %rd\d+, %rd\d+,",
    "mma_ts": r"tcgen05\.mma\.cta_group::1\.kind::f16 \[%r\d+\], \[%r\d+\], %rd\d+,",
    "commit": r"tcgen05\.commit\.cta_group::1\.mbarrier::arrive::one",
    "tma_4d": r"cp\.async\.bulk\.tensor\.4d\.shared::",
    "tma_5d": r"cp\.async\.bulk\.tensor\.5d\.shared::",
    "ld_x16": r"tcgen05\.ld\.sync\.aligned\.32x32b\.x16\.b32",
    "ld_x32": r"tcgen05\.ld\.sync\.aligned\.32x32b\.x32\.b32",
    "st_x16": r"tcgen05\.st\.sync\.aligned\.32x32b\.x16\.b32",
    "max_nan": r"max\.NaN\.f32",
}


def compile_to_ptx(options, folder):
    """The PTX; nvcc stops there, or goes on to the image and keeps the PTX beside it."""
    if options.arch:
        flags = [*nvcc.image_of(options.arch),
                 "-Xptxas", "--warn-on-spills,--warn-on-local-memory-usage,-Werror",
                 "--keep", "--keep-dir", folder, "-o", folder / "image"]
    else:
        flags = ["-arch=compute_100f", "-ptx", "-o", folder / f"{options.kernel}.ptx"]
    nvcc.compile_kernel(options, options.source, ["-Werror", "all-warnings", *flags])
    return (folder / f"{options.kernel}.ptx").read_text(encoding="utf-8")


def describe(ptx):
    """One row of expected.txt."""
    counts = [f"{name} {len(re.findall(form, ptx))}" for name, form in FORMS.items()]
    registers = sorted(set(re.findall(r"setmaxnreg\.((?:inc|dec)\.sync\.aligned\.u32 \d+)", ptx)))
    short = [line.replace(".sync.aligned.u32", "") for line in registers]
    return "; ".join([*counts, "setmaxnreg " + ", ".join(short)])


def main():
    parser = nvcc.parser()
    parser.add_argument("--arch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ptx = compile_to_ptx(options, pathlib.Path(folder))
    got = f"{options.kernel}: {describe(ptx)}"
    if got not in EXPECTED.read_text(encoding="utf-8").splitlines():
        sys.exit(f"not in {EXPECTED.name}:\n{got}")


if __name__ == "__main__":
    main()
