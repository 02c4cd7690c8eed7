# SPDX-License-Identifier: Apache-2.0
"""The ctypes declarations against deuce.h: a C compiler says where the fields are."""
import ctypes
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import support
from deuce import _abi, _library

HEADER = support.ROOT / "include" / "deuce" / "deuce.h"
CODE = re.sub(r"//[^\n]*|/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
STRUCTS = {"deuce_decode_config": _abi.Config, "deuce_decode_args": _abi.Args,
           "deuce_fault": _abi.Fault}
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def struct_fields(name):
    """Names of a struct's fields in the order of the header."""
    body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), CODE, re.S).group(1)
    fields = []
    for declaration in filter(str.strip, body.split(";")):
        for declarator in declaration.split(","):
            fields.append(re.search(r"(\w+)\s*(\[\d+\])?\s*$", declarator).group(1))
    return fields


class Abi(unittest.TestCase):

    def test_every_field_of_the_header_is_declared_in_order(self):
        for name, struct in STRUCTS.items():
            self.assertEqual([field for field, _ in struct._fields_], struct_fields(name), name)

    @unittest.skipUnless(COMPILER, "no C compiler")
    def test_offsets_and_sizes_equal_those_of_the_c_compiler(self):
        lines = [f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), '
                 f"sizeof((({name} *)0)->{field}));"
                 for name in STRUCTS for field in struct_fields(name)]
        lines += [f'printf("{name} - 0 %zu\\n", sizeof({name}));' for name in STRUCTS]
        with tempfile.TemporaryDirectory() as folder:
            source, program = Path(folder, "layout.c"), Path(folder, "layout")
            source.write_text("#include <deuce/deuce.h>\n#include <stddef.h>\n#include <stdio.h>\n"
                              "int main(void) {" + "\n".join(lines) + "return 0; }\n")
            subprocess.run([COMPILER, "-std=c11", f"-I{HEADER.parent.parent}", str(source), "-o",
                            str(program)], check=True)
            output = subprocess.run([str(program)], check=True, capture_output=True,
                                    text=True).stdout
        for line in output.splitlines():
            name, field, offset, size = line.split()
            struct = STRUCTS[name]
            found = ((0, ctypes.sizeof(struct)) if field == "-"
                     else (getattr(struct, field).offset, getattr(struct, field).size))
            self.assertEqual(found, (int(offset), int(size)), line)

    def test_every_function_of_the_header_is_declared_and_no_other(self):
        declared = set(re.findall(r"(deuce_\w+)\s*\([^;{]*\);", CODE))
        self.assertEqual(declared - {"deuce_decode_config_init"}, set(_abi.PROTOTYPES))

    def test_argument_counts_equal_those_of_the_header(self):
        for name, (_, arguments) in _abi.PROTOTYPES.items():
            listed = re.search(name + r"\s*\(([^;{]*)\);", CODE).group(1).strip()
            count = 0 if listed == "void" else listed.count(",") + 1
            self.assertEqual(len(arguments), count, name)

    def test_enumerators_equal_those_of_the_header(self):
        numbers = {name: int(value) for name, value
                   in re.findall(r"(DEUCE_[A-Z0-9_]+)\s*=\s*(\d+)", CODE)}
        backends = {name: numbers["DEUCE_BACKEND_" + name.upper()] for name in _abi.BACKENDS}
        self.assertEqual(backends, _abi.BACKENDS)
        self.assertEqual(
            [numbers["DEUCE_" + name] for name in ("F32", "F16", "BF16", "E4M3", "E5M2")],
            [_abi.DTYPES[name] for name in ("float32", "float16", "bfloat16", "float8_e4m3fn",
            "float8_e5m2")])
        flags = {name: value for name, value in numbers.items() if name.startswith("DEUCE_FLAG_")}
        self.assertEqual(flags, {"DEUCE_FLAG_" + name: getattr(_abi, "FLAG_" + name)
                                 for name in ("TRACE", "WORKSPACE_KEPT", "PDL")})

    def test_statuses_equal_those_of_the_header_and_have_an_exception_each(self):
        text = re.search(r"enum \{\s*DEUCE_OK.*?\};", CODE, re.S).group(0)
        statuses = {name: int(value) for name, value in re.findall(r"DEUCE_(\w+) = (\d+)", text)}
        from deuce import errors
        self.assertEqual(sorted(set(statuses.values()) - {0}), sorted(errors.BY_STATUS))
        for name, kind in (("INVALID_ARGUMENT", errors.InvalidArgument),
                           ("UNSUPPORTED", errors.Unsupported), ("HAZARD", errors.Hazard),
                           ("WORKSPACE_TOO_SMALL", errors.WorkspaceTooSmall),
                           ("NO_DEVICE", errors.NoDevice), ("DEVICE_FAULT", errors.DeviceFault),
                           ("RUNTIME_ERROR", errors.RuntimeFailure),
                           ("VERSION_MISMATCH", errors.VersionMismatch)):
            self.assertIs(errors.BY_STATUS[statuses[name]], kind)

    def test_an_empty_config_equals_the_initialiser_of_the_header(self):
        config = _abi.Config()
        self.assertEqual((config.struct_size, config.device_id, config.window_left,
                          config.window_right), (ctypes.sizeof(_abi.Config), -1, -1, -1))
        others = [name for name, _ in _abi.Config._fields_ if name not in (
            "struct_size", "device_id", "window_left", "window_right")]
        self.assertEqual({getattr(config, name) for name in others}, {0})

    def test_the_library_answers_with_the_abi_version_of_this_package(self):
        self.assertEqual(_library.library.deuce_abi_version(), _abi.ABI_VERSION)


if __name__ == "__main__":
    unittest.main()
