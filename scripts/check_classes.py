#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds classes to 25 methods and 15 data members. A larger one says why in the comment above it, after "Large:".
Holds names to one type each: two types of one name in one namespace share what the linker keeps once.
Holds constants of one file to names that no header gives to a constant of the namespaces around: files are compiled
together, and those behind it would read its constant in the place of the header's.

Prints file:line: what for every class without a reason, for every reason that no class needs any more, for every name
that headers give to two types, and for every constant that hides another, and exits with 1 when there is one.
--list prints the large ones with their reasons instead.
"""
import argparse
import pathlib
import re
import sys

METHODS, MEMBERS = 25, 15
# What is no folder of libraries and programs: tests, and what other tools wrote.
OUTSIDE = {"build", "tests", "fuzz", "packaging", "shared"}
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
HEAD = re.compile(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^;{()]*)?\{")
LABEL = re.compile(r"^\s*(?:(?:public|private|protected)\s*:\s*)*")
NO_MEMBER = re.compile(r"(?:using|friend|static_assert|static constexpr|enum|struct|class|union)\b|template\s*<[^{;]*>\s*(?:struct|class)\b")
SCOPES = re.compile(r"\bnamespace\s*([\w:]*)\s*\{|\b(?:class|struct|union|enum(?:\s+class)?)\s+(\w+(?:::\w+)*)(?:\s+final)?\s*(?::(?!:)[^;{()]*)?\{|[{}]")
# At the margin, where declarations of a namespace begin, and the further ones of "a = 1, b{2}".
CONSTANT = re.compile(r"^(?:inline |static )*const(?:expr)? [^;{}()=]*?\b(\w+) *(?:\[\w*\] *)*(?==|\{)", re.MULTILINE)
FURTHER = re.compile(r",\s*(\w+)\s*(?:=(?!=)|\{)")
WALK = re.compile(f"(?P<constant>{CONSTANT.pattern})|{SCOPES.pattern}", re.MULTILINE)
OPERATOR = re.compile(r"\boperator\s*[^\w\s(]+|\boperator\s*\(\)")
ARGUMENTS = re.compile(r"<[^<>]*>")
REASON = re.compile(r"\bLarge: (.*)")


def blanked(text):
    """The text without comments and what stands between quotes, each character and line where it was."""
    return NOISE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def statements(text, at):
    """The declarations between a class's braces, which begin at `at`; bodies inside are shown as {}."""
    depth, now = 1, ""
    for i in range(at, len(text)):
        c = text[i]
        depth += (c == "{") - (c == "}")
        if depth == 0:
            return
        if depth > 1 or c == "{":
            continue
        if c == "}":
            now += "{}"
            before = LABEL.sub("", now).partition("{}")[0]
            if "(" in before and not before.rstrip().endswith("=") and not NO_MEMBER.match(before):
                yield now  # a function with its body
                now = ""
        elif c == ";":
            yield now
            now = ""
        else:
            now += c


def sizes(text, at):
    """(methods, data members) of the class whose body begins at `at`."""
    methods = members = 0
    for statement in statements(text, at):
        statement = LABEL.sub("", statement).strip()
        if not statement or NO_MEMBER.match(statement):
            continue
        plain = re.split(r"[={]", OPERATOR.sub("named", statement))[0]
        for _ in range(6):
            plain = ARGUMENTS.sub("", plain)
        if "(" in plain:
            methods += 1
        else:
            members += 1 + plain.count(",")
    return methods, members


def comment_above(lines, line):
    """The comment that ends in the line before `line` (from 0), as one text."""
    first = line
    while first > 0 and lines[first - 1].lstrip().startswith("//"):
        first -= 1
    return " ".join(text.strip().lstrip("/").strip() for text in lines[first:line])


def classes(root):
    """(file:line, name, methods, members, the reason or "") of every class of the house."""
    for path in sorted(p for suffix in ("hpp", "cpp") for p in root.glob(f"*/**/*.{suffix}")):
        place = path.relative_to(root)
        if place.parts[0] in OUTSIDE:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        plain, lines = blanked(text), text.splitlines()
        for match in HEAD.finditer(plain):
            line = plain.count("\n", 0, match.start())
            methods, members = sizes(plain, match.end())
            reason = REASON.search(comment_above(lines, line))
            yield f"{place.as_posix()}:{line + 1}", match[1], methods, members, reason[1] if reason else ""


def types(text):
    """(offset, name with its namespaces) of the types of a blanked file that stand in named namespaces."""
    scopes = []
    for match in SCOPES.finditer(text):
        if match[0] == "}":
            del scopes[-1:]
            continue
        if match[2] and all(scopes):
            yield match.start(), "::".join([*scopes, match[2]])
        scopes.append("" if match[2] else match[1] or "")  # nothing within a body or an unnamed namespace is seen elsewhere


def twice(root):
    """A line for each name that two files give to a type, one of them a header. Tests are held to what they link."""
    first, found = {}, []
    paths = [p for suffix in ("hpp", "cpp") for p in root.glob(f"*/**/*.{suffix}")]
    for path in sorted(paths, key=lambda p: (p.relative_to(root).parts[0] in OUTSIDE, p.suffix == ".cpp", p)):
        place = path.relative_to(root)
        if place.parts[0] in OUTSIDE - {"tests"}:
            continue
        text = blanked(path.read_text(encoding="utf-8", errors="replace"))
        for at, name in types(text):
            other = first.get(name)
            if other is None:
                if place.parts[0] != "tests":
                    first[name] = place
            elif other != place and other.suffix == ".hpp":
                line = text.count("\n", 0, at) + 1
                found.append(f"{place.as_posix()}:{line}: {name} is a type of {other.as_posix()}, too: name one of them otherwise")
    return found


def constants(text):
    """(offset, namespaces around, the unnamed one as "", name) of a blanked file's constants, those of classes and functions aside."""
    scopes = []  # nothing of what is no namespace
    for match in WALK.finditer(text):
        if match[0] == "}":
            del scopes[-1:]
        elif match["constant"] is None:
            scopes.append(match[3] if match[0].startswith("namespace") else None)
        elif None not in scopes:
            around = [name for scope in scopes for name in scope.split("::")]
            for name in (match[2], *FURTHER.findall(text, match.end(), text.find(";", match.end()))):
                yield match.start(), around, name


def hidden(root):
    """A line for each constant of one file that hides one that a header gives to a namespace around."""
    texts = {p.relative_to(root): blanked(p.read_text(encoding="utf-8", errors="replace"))
             for suffix in ("hpp", "cpp") for p in sorted(root.glob(f"*/**/*.{suffix}"))
             if p.relative_to(root).parts[0] not in OUTSIDE}
    given = {(*around, name): place for place, text in texts.items() if place.suffix == ".hpp"
             for _, around, name in constants(text) if "" not in around}
    found = []
    for place, text in texts.items():
        for at, around, name in constants(text) if place.suffix == ".cpp" else ():
            for depth in range(1, len(around) - 1) if around[-1:] == [""] else ():
                if header := given.get((*around[:depth], name)):
                    line = text.count("\n", 0, at) + 1
                    found.append(f"{place.as_posix()}:{line}: {name} hides {'::'.join(around[:depth])}::{name} of {header.as_posix()} "
                                 "from files compiled behind it: name it otherwise")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if not (arguments.root / "core").is_dir():
        sys.exit(f"{arguments.root}: no core/ here; give --root the top of the source tree")
    found = []
    for place, name, methods, members, reason in classes(arguments.root):
        large = methods > METHODS or members > MEMBERS
        if large and (arguments.list or not reason):
            found.append(f"{place}: {name} has {methods} methods and {members} members: " +
                         (reason if reason else 'split it, or say why above it, after "Large:"'))
        if reason and not large and not arguments.list:
            found.append(f"{place}: {name} has {methods} methods and {members} members and is not large: delete its reason")
    found += [] if arguments.list else twice(arguments.root) + hidden(arguments.root)
    print("\n".join(found) if found else "classes: good")
    return 1 if found and not arguments.list else 0


if __name__ == "__main__":
    sys.exit(main())
