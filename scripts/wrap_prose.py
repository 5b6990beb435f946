#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of prose in pages end at 100 columns; tables, blocks of code, headings and pictures are as long as they are. A
block of code ends with a line of its own.

  scripts/wrap_prose.py              # names lines that are longer, in all pages but LEFT; exit code 1 where there are some
  scripts/wrap_prose.py --fix        # breaks anew the paragraphs that have them, and no others
  scripts/wrap_prose.py --fix PAGE...
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 100
LEFT = {"CHANGELOG.md"}  # of the root
KEPT = re.compile(r"^\s*(\||#|<!--|!\[[^\]]*\]\([^)]*\)\s*$|\[[^\]]+\]:)")
ITEM = re.compile(r"^(\s*)([-*+]|\d+[.)])(\s+)")
FENCE = re.compile(r"^\s*(```|~~~)")
# Words that would mean something else at the beginning of a line.
OPENS = re.compile(r"([-*+]|\d+[.)]|#+|>.*|\|.*|=+|-+|```.*|~~~.*)$")
# Parts that stay on one line: spans of code, unless they are long, and what has no space.
WORD = re.compile(r"(?:`[^`]{1,60}`|\S)+")


def pages():
    found = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(page for page in found if page.relative_to(ROOT).parts[0] not in {"build", *LEFT})


def words_of(text):
    """Words that may begin a line; one that may not is joined to the word before it."""
    words = []
    for word in WORD.findall(text):
        if words and OPENS.match(word):
            words[-1] += " " + word
        else:
            words.append(word)
    return words


def blocks_of(lines):
    """Pairs of whether lines are prose, and the lines: a paragraph or an item of a list each."""
    blocks, in_code = [], False
    for line in lines:
        if FENCE.match(line):
            in_code = not in_code
            blocks.append((False, [line]))
            continue
        prose = not in_code and line.strip() != "" and not KEPT.match(line)
        indented_code = line.startswith("    ") and not (blocks and blocks[-1][0])
        if not prose or indented_code:
            blocks.append((False, [line]))
        elif blocks and blocks[-1][0] and not ITEM.match(line):
            blocks[-1][1].append(line)
        else:
            blocks.append((True, [line]))
    return blocks


def wrapped(lines):
    """A paragraph's or item's lines, none longer than WIDTH unless one word is."""
    item = ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*", lines[0])[0]
    rest = " " * len(first)
    result, current = [], first
    for word in words_of(" ".join([lines[0][len(first):], *lines[1:]])):
        empty = current in (first, rest) and current.strip() == (first.strip() if not result else "")
        if not empty and len(current) + 1 + len(word) > WIDTH:
            result.append(current)
            current, empty = rest, True
        current += word if empty else " " + word
    return [*result, current]


def long_lines(text):
    """Numbers of lines of prose that could be broken and are longer than WIDTH."""
    number = 1
    for prose, lines in blocks_of(text.splitlines()):
        for line in lines:
            if prose and len(line) > WIDTH and len(wrapped([line])) > 1:
                yield number
            number += 1


def glued_fences(text):
    """Numbers of lines that should end a block of code and do not, as something else is on them."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if not FENCE.match(line):
            continue
        if in_code and line.strip(" `~"):
            yield number
        in_code = not in_code


def fixed(text):
    result = []
    for prose, lines in blocks_of(text.splitlines()):
        too_long = prose and any(len(line) > WIDTH for line in lines) and not any(line.endswith("  ") for line in lines)
        result += wrapped(lines) if too_long else lines
    return "\n".join(result) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fix", action="store_true", help="break anew what is too long")
    parser.add_argument("page", nargs="*", type=pathlib.Path, help="all pages unless named")
    options = parser.parse_args()
    wrong = 0
    for page in options.page or pages():
        text = page.read_text()
        if options.fix and (new := fixed(text)) != text:
            page.write_text(new)
            text = new
        for number in long_lines(text):
            print(f"{page.resolve().relative_to(ROOT)}:{number}: longer than {WIDTH} columns")
            wrong += 1
        for number in glued_fences(text):
            print(f"{page.resolve().relative_to(ROOT)}:{number}: a block of code ends with a line of its own")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
