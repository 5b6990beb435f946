#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links of all pages lead somewhere: files exist, headings that are named after # exist, pictures are there, every page of docs/
is in the site's table of contents and can be reached from docs/index.md, and no page is longer than five screens.

A screen is 50 lines of 100 characters, a row of a table one line. Written pages (docs/reference) and those of which a test holds
each line may be longer.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()]*\))?)\)")
SCREENS = 5


def pages():
    found = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md"), *ROOT.glob("docs/**/*.md")]
    return sorted(page for page in found if page.relative_to(ROOT).parts[0] != "build")


def prose(text):
    """Without blocks and spans of code, whose brackets are no links."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors(page):
    names = {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        names[slug if slug not in names else f"{slug}-1"] = heading
    return names


def links(page):
    for target in LINK.findall(prose(page.read_text())):
        if not re.match(r"\w+:", target):
            yield target


def wrong_links(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{page.relative_to(ROOT)}: {target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{page.relative_to(ROOT)}: {target}: no such heading"


def reachable(start):
    seen, ahead = set(), [start]
    while ahead:
        page = ahead.pop()
        if page in seen:
            continue
        seen.add(page)
        for target in links(page):
            file = (page.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file.exists():
                ahead.append(file)
            elif file.is_dir():
                ahead += file.glob("*.md")
    return seen


def lines_on_screen(text):
    return sum(1 if line.startswith("|") else max(1, -(-len(line) // 100)) for line in text.splitlines())


def main():
    wrong = [each for page in pages() for each in wrong_links(page)]
    docs = sorted((ROOT / "docs").glob("**/*.md"))
    seen = reachable(ROOT / "docs" / "index.md")
    wrong += [f"{page.relative_to(ROOT)}: cannot be reached from docs/index.md" for page in docs if page not in seen]
    contents = (ROOT / "mkdocs.yml").read_text()
    for page in docs:
        name = page.relative_to(ROOT / "docs").as_posix()
        if not name.startswith(("decisions/", "reference/document-")) and f" {name}\n" not in contents:
            wrong.append(f"docs/{name}: not in the nav of mkdocs.yml")
        lines = lines_on_screen(page.read_text())
        if not name.startswith(("reference/", "decisions/")) and lines > 50 * SCREENS:
            wrong.append(f"docs/{name}: {lines} lines on screen, at most {50 * SCREENS}")
    print("\n".join(wrong))
    print(f"{len(pages())} pages, {sum(len(list(links(page))) for page in pages())} links; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
