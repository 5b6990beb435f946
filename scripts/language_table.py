#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of errors in docs/language_models.md, from `rehearse validate --set llm`.

  scripts/language_table.py build/release/cli/rehearse            # prints it
  scripts/language_table.py build/release/cli/rehearse --check    # whether the page has it; exit code 1 where not
  scripts/language_table.py build/release/cli/rehearse --write    # puts it there
"""
import argparse
import json
import pathlib
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "language_models.md"
BEGIN, END = "<!-- table of scripts/language_table.py -->", "<!-- end of the table -->"
HEAD = ["source, board", "rows", "cold", "with pilot", "tau", "cold in band, its reach", "with pilot in band, its reach", "memory, most"]


def percent(value):
    return f"{100 * value:.1f}"


def band(group, kind):
    """Share of the rows in their bands and how far these reach above the predictions, in the middle."""
    if f"{kind}_in_band" not in group:
        return "-"
    return f"{100 * group[f'{kind}_in_band']:.0f}, {100 * group[f'{kind}_band']:.0f}"


def line(group):
    """A row of the table of one of the document's groups."""
    memory = f"{percent(group['memory_mean'])}, {percent(group['memory_most'])}" if "memory_mean" in group else "-"
    cells = [group["set"], str(group["rows"]), percent(group["cold_mean"]),
             percent(group["pilot_mean"]) if "pilot_mean" in group else "-",
             f"{group['tau']:.2f}" if "tau" in group else "-", band(group, "cold"), band(group, "pilot"), memory]
    return "| " + " | ".join(cells) + " |"


def table(document):
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    return "\n".join(lines + [line(group) for group in document["groups"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rehearse", help="the program")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--check", action="store_true", help="compare with the page")
    group.add_argument("--write", action="store_true", help="put it into the page")
    options = parser.parse_args()
    command = [options.rehearse, "validate", "--set", "llm", "--format", "json", "-q"]
    text = table(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    wanted = f"{before}{BEGIN}\n{text}\n{END}{after}"
    if options.write:
        PAGE.write_text(wanted)
    elif options.check:
        if page != wanted:
            sys.exit(f"{PAGE.name} has another table than `rehearse validate --set llm` gives: --write puts it there")
    else:
        print(text)


if __name__ == "__main__":
    main()
