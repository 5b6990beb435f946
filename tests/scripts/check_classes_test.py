#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives scripts/check_classes.py classes of known sizes and expects it to name those that are too large."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_classes.py"


def check(text, *options, **others):
    """The exit code and what is printed of core/a.hpp with `text`, and of `others`: core/NAME.hpp, or .cpp after "in_"."""
    with tempfile.TemporaryDirectory() as directory:
        core = pathlib.Path(directory, "core")
        core.mkdir()
        core.joinpath("a.hpp").write_text(text, encoding="utf-8")
        for name, other in others.items():
            core.joinpath(f"{name}.cpp" if name.startswith("in_") else f"{name}.hpp").write_text(other, encoding="utf-8")
        result = subprocess.run([sys.executable, str(SCRIPT), "--root", directory, *options], capture_output=True, text=True,
                                check=False)
        return result.returncode, result.stdout.strip()


def members(count):
    return "".join(f"    std::map<int, std::function<void(int, int)>> m{i}{{}};\n" for i in range(count))


def methods(count):
    """Each in another way: declared, with a body, with defaults, an operator, a template."""
    ways = ["int f{0}(int a, int b = 3) const;", "int f{0}() const {{ return x ? 1 : 2; }}", "bool operator==(const T{0}& o) const = default;",
            "template <typename T> T f{0}(std::span<const T> a) {{\n for (;;) {{ g(); }} }}", "explicit A(int a{0}) : a_(a{0}) {{}}"]
    return "".join(f"    {ways[i % len(ways)].format(i)}\n" for i in range(count))


class CheckClasses(unittest.TestCase):
    def test_what_is_as_large_as_may_be_passes(self):
        inside = "    struct Inner { int x, y; };\n    enum class E { a, b };\n    using F = int;\n    friend class G;\n"
        self.assertEqual(check(f"class A : public B<int> {{\npublic:\n{methods(25)}{inside}private:\n{members(15)}}};\n"),
                         (0, "classes: good"))

    def test_one_more_is_named_by_file_and_line(self):  # 26 methods stand on 31 lines
        code, text = check(f"\nclass A final {{\n{methods(26)}}};\nstruct B {{\n{members(14)}    int a, b = 2;\n}};\n")
        self.assertEqual(code, 1)
        self.assertIn("core/a.hpp:2: A has 26 methods and 0 members", text)
        self.assertIn("core/a.hpp:35: B has 0 methods and 16 members", text)

    def test_a_reason_is_enough_and_is_listed(self):
        text = f"/// What it is.\n/// Large: one member a key.\nstruct A {{\n{members(16)}}};\n"
        self.assertEqual(check(text), (0, "classes: good"))
        self.assertEqual(check(text, "--list"), (0, "core/a.hpp:3: A has 0 methods and 16 members: one member a key."))

    def test_a_reason_of_none_that_is_large_is_named(self):
        code, text = check("/// Large: it was.\nstruct A { int a; };\n")
        self.assertEqual(code, 1)
        self.assertIn("is not large", text)

    def test_what_stands_in_comments_and_texts_does_not_count(self):
        quoted = '    // struct C { int x; };\n    const char* text = "class D { int a(); };";\n'
        self.assertEqual(check(f"struct A {{\n{quoted}{members(14)}}};\n"), (0, "classes: good"))

    def test_a_name_of_two_types_is_named_in_the_later_file(self):
        one, other = "namespace a::b {\nstruct S { int x; };\n}\n", "namespace a {\nnamespace b {\nenum class S { x };\n}\n}\n"
        code, text = check(one, z=other)
        self.assertEqual(code, 1)
        self.assertEqual(text, "core/z.hpp:3: a::b::S is a type of core/a.hpp, too: name one of them otherwise")
        self.assertEqual(check(one, in_z=other)[0], 1)

    def test_names_in_other_scopes_are_others(self):
        one = "namespace a {\nstruct S { int x; };\nclass T {\n    struct Inner;\n};\n}\n"
        for other in ("namespace b {\nstruct S { int y; };\n}\n", "namespace a {\nnamespace {\nstruct S { int y; };\n}\n}\n",
                      "namespace a {\nvoid f() { struct S { int y; }; }\n}\n", "namespace a {\nstruct S;\nstruct T::Inner { int y; };\n}\n"):
            self.assertEqual(check(one, in_z=other), (0, "classes: good"), other)

    def test_a_constant_of_one_file_that_hides_a_header_s_is_named(self):
        header = "namespace a {\ninline constexpr double least = 1, most{2};\ninline int f(\n    const int& most = 3);\n}\n"
        for file, hides in (("namespace a::b {\nnamespace {\nconstexpr double most = 8;\n}\n}\n", True),
                            ("namespace a {\nnamespace b {\nnamespace {\nstatic const int x = 1, least = 3;\n}\n}\n}\n", True),
                            ("namespace a {\nnamespace {\nconstexpr double most = 8;\n}\n}\n", False),  # no compiler takes both
                            ("namespace a::b {\nnamespace {\nint g() {\nconst int most = 8;\nreturn most;\n}\n}\n}\n", False),
                            ("namespace c::b {\nnamespace {\nconstexpr double most = 8;\n}\n}\n", False)):
            code, text = check(header, in_z=file)
            self.assertEqual(code, 1 if hides else 0, file + text)
            if hides:
                self.assertRegex(text, r"core/in_z.cpp:[34]: (most|least) hides a::\1 of core/a.hpp from files compiled behind it")


if __name__ == "__main__":
    unittest.main()
