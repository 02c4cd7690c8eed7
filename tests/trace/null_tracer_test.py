# SPDX-License-Identifier: Apache-2.0
"""A kernel that does not trace is the kernel without the calls, bit for bit: compiles one kernel as
it stands and once more with every trace call taken out of the source, and compares the machine code."""
import collections
import pathlib
import re
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import nvcc

GUARD = "if constexpr (Machine::kTraces)"


def end_of_statement(text, start):
    """Behind the statement or block that begins at start."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "({") - (text[at] in ")}")
        if depth == 0 and (text[at] == ";" or (text[at] == "}" and text[start] == "{")):
            return at + 1
    raise ValueError("a statement without an end")


def without_calls(text):
    """The text without what stands behind the machine's own word on whether it traces."""
    removed = 0
    while (at := text.find(GUARD)) >= 0:
        start = at + len(GUARD)
        while text[start].isspace():
            start += 1
        text = text[:at] + text[end_of_statement(text, start):]
        removed += 1
    return text, removed


def strip(source, target):
    """Copies the source tree; returns how many calls each folder of kernels has lost."""
    shutil.copytree(source, target)
    removed = collections.Counter()
    for path in (target / "kernel").rglob("*.h"):
        if path.name == "machine.h":
            continue  # the contract itself
        text, count = without_calls(path.read_text(encoding="utf-8"))
        removed[path.parent.name] += count
        left = re.findall(r".*machine_?\.trace_.*", text)
        if left:
            sys.exit(f"{path.name}: a trace call in a form that this test does not know:\n  " + "\n  ".join(left))
        path.write_text(text, encoding="utf-8")
    return removed


def machine_code(options, source):
    """The .text sections of the kernel's image, by name."""
    with tempfile.TemporaryDirectory() as folder:
        image = pathlib.Path(folder) / "image.cubin"
        nvcc.compile_kernel(options, source, [*nvcc.image_of(options.arch), "-o", image])
        return text_sections(image.read_bytes())


def text_sections(elf):
    offset, size, count, names = struct.unpack_from("<Q10xHHH", elf, 0x28)
    sections = [struct.unpack_from("<II4QII2Q", elf, offset + i * size) for i in range(count)]
    table = elf[sections[names][4]:sections[names][4] + sections[names][5]]
    found = {}
    for name, _, _, _, start, length, *_ in sections:
        label = table[name:table.index(b"\0", name)].decode()
        if label.startswith(".text."):
            found[label] = elf[start:start + length]
    return found


def main():
    parser = nvcc.parser()
    parser.add_argument("--arch", required=True)
    parser.add_argument("--folder", required=True, help="of the kernel's source, which must hold calls")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bare = pathlib.Path(folder) / "src"
        removed = strip(options.source, bare)
        if removed[options.folder] < 10:
            sys.exit(f"{options.folder}: only {removed[options.folder]} trace calls were found to take out")
        with_calls = machine_code(options, options.source)
        without = machine_code(options, bare)
    if not with_calls or with_calls.keys() != without.keys():
        sys.exit(f"kernels differ: {sorted(with_calls)} and {sorted(without)}")
    for name, code in with_calls.items():
        if code != without[name]:
            differ = sum(a != b for a, b in zip(code, without[name]))
            sys.exit(f"{name}: {len(code)} bytes with the calls, {len(without[name])} without, {differ} differ")
    print(f"{options.kernel}: {sum(map(len, with_calls.values()))} bytes of machine code equal, {removed[options.folder]} calls")


if __name__ == "__main__":
    main()
