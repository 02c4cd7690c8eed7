# SPDX-License-Identifier: Apache-2.0
"""Every public field and function is documented: a comment of its own in deuce.h, a row in
docs/semantics.md, and for fields a row in the table of effect_test.cpp.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = (ROOT / "include/deuce/deuce.h").read_text()
WRAPPER = (ROOT / "include/deuce/deuce.hpp").read_text()
STRUCTS = ("deuce_decode_config", "deuce_decode_args", "deuce_fault")


def members(name):
    """(field, comment) of a struct; a field must stand on a line of its own."""
    body = re.search(rf"typedef struct {name} {{\n(.*?)\n}} {name};", HEADER, re.DOTALL).group(1)
    comment, found = [], []
    for line in body.splitlines():
        line = line.strip()
        if line.startswith("///"):
            comment.append(line[3:].strip())
        elif line:
            declared = re.fullmatch(r"[\w *]+[ *](\w+)(\[\d\])?;", line)
            assert declared, f"{name}: one field a line, please: {line}"
            found.append((declared.group(1), " ".join(comment)))
            comment = []
    return found


class Docs(unittest.TestCase):
    def test_the_parser_sees_every_field(self):
        self.assertEqual([len(members(name)) for name in STRUCTS], [30, 44, 9])

    def test_every_field_has_a_comment_of_its_own(self):
        for name in STRUCTS:
            for field, comment in members(name):
                self.assertGreaterEqual(len(comment), 10, f"{name}.{field} has no doc comment")

    def test_every_pointer_states_its_shape_or_that_it_is_reserved(self):
        body = re.search(r"typedef struct deuce_decode_args {\n(.*?)\n} ", HEADER, re.DOTALL).group(1)
        pointers = set(re.findall(r"\* (\w+);", body))
        self.assertGreater(len(pointers), 15)
        for field, comment in members("deuce_decode_args"):
            if field in pointers:
                self.assertRegex(comment, r"Shape|\bAs \w|[Rr]eserved|Room for", field)

    def test_every_enumerator_and_function_has_a_comment(self):
        lines = HEADER.splitlines()
        for number, line in enumerate(lines):
            if re.match(r"\s+DEUCE_\w+ = \d", line) and "DEUCE_FAULT_NONE" not in line and "BACKEND_AUTO" not in line:
                self.assertTrue("///<" in line or lines[number - 1].strip().startswith("///"), line)
            if line.startswith("DEUCE_API"):
                self.assertTrue(lines[number - 1].startswith("///"), line)

    def test_semantics_page_has_one_row_for_every_field_and_no_other(self):
        text = (ROOT / "docs/semantics.md").read_text()
        for name in STRUCTS:
            section = re.search(rf"^## `{name}`\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
            self.assertTrue(section, f"docs/semantics.md has no section `{name}`")
            rows = re.findall(r"^\| `(\w+)` \|", section.group(1), re.MULTILINE)
            self.assertEqual(rows, [field for field, _ in members(name)])

    def test_every_field_has_a_test_of_its_effect(self):
        table = (ROOT / "tests/api/effect_test.cpp").read_text()
        tested = set(re.findall(r'^    {"(\w+)",', table, re.MULTILINE)) | set(re.findall(r'"(max_\w+)", \[', table))
        fields = {field for name in STRUCTS[:2] for field, _ in members(name)}
        self.assertEqual(fields - tested, {"tag"})  # Tag.ChangesNoBit says where it shows
        self.assertEqual(tested - fields, set())

    def test_every_public_member_of_the_wrapper_has_a_comment_or_a_plain_twin(self):
        lines = WRAPPER.splitlines()
        plain = {"init_workspace", "run", "explain", "status", "data", "size", "handle", "swap", "DecodePlan", "HostWorkspace", "set_stride", "throw_unless_ok"}
        for number, line in enumerate(lines):
            declared = re.match(r"(?:  )?(?:static |inline |explicit )*[\w:<>&*]+(?: [\w:<>&*]+)* [&*]?(\w+)\(", line)
            if declared and not line.strip().startswith(("return", "throw", "if", "//", "internal")) and declared.group(1) not in plain:
                self.assertTrue(lines[number - 1].strip().startswith("///"), line)


if __name__ == "__main__":
    unittest.main()
