#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/validation.md and docs/validation/errors.md, from what `rehearse validate --set published` answers.

  rehearse validate --set published --format json --output all.json
  scripts/validation_table.py all.json             # prints them
  scripts/validation_table.py all.json --write     # puts them into the pages
  scripts/validation_table.py all.json --check     # exit code 1 where a page says something else

A page says something else when a figure differs by more than 0.2 points and 2 % of itself, beyond its rounding, as
hold_published.py counts, or when a row or a number of rows is another one.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
# Systems at whose rows somebody looked while their machine or rules were made, or of which a row gave a figure
# (docs/validation/rows.md); the others are held out.
SEEN = {"Azure BatchAI Horovod": "no", "ParaDL (ABCI) logs": "no", "Megatron sequence-parallel (2205.05198)": "in part",
        "Megatron-LM PTD-P (SC21 Table 1)": "in part", "NVIDIA DeepLearningExamples, TensorFlow": "in part",
        "NVIDIA DeepLearningExamples, TensorFlow2": "in part", "Aries OSU": "in part",
        "TensorFlow benchmarks 2017": "in part", "Piz Daint TF parameter server": "in part", "MLPerf-HPC other": "in part",
        "CosmoFlow-small (Cori/Summit)": "in part"}
MANY = 10  # rows that a system needs for a line of its own in the short table
COLUMNS = ["held out", "anchored: rows", "median", "p90", "in band", "cold: rows", "median", "p90", "in band"]
SLACK, SHARE = 0.2, 0.02


def p90(errors):
    ordered = sorted(errors)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


def cells(rows, predicted, low, high):
    """Number of rows, median, nine in ten, share in the band; blank where nothing is answered."""
    rows = [row for row in rows if predicted in row]
    if not rows:
        return ["", "", "", ""]
    errors = [abs(row[predicted] - row["published"]) / row["published"] for row in rows]
    inside = sum(row[low] <= row["published"] <= row[high] for row in rows)
    return [str(len(rows)), f"{100 * statistics.median(errors):.1f} %", f"{100 * p90(errors):.0f} %",
            f"{100 * inside / len(rows):.0f} %"]


def both(rows):
    anchored = [row for row in rows if row.get("anchor")]
    return cells(anchored, "predicted", "low", "high") + cells(rows, "cold_predicted", "cold_low", "cold_high")


def held_out(row):
    return row["system"] not in SEEN


def markdown(head, lines):
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines]).replace(" --- ", "---")


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def held_word(rows):
    return SEEN.get(rows[0]["system"], "yes")


def totals(rows, number, memory):
    """What is to be expected, in four lines."""
    lines = []
    for name, of in [("**systems from which nothing was derived**", [r for r in rows if held_out(r)]), ("all systems", rows)]:
        figures = both(of)
        lines += [[name, "cold", *figures[4:]], ["", "anchored", *figures[:4]]]
    return (markdown(["rows of", "prediction", "rows", "error, median", "nine in ten under", "in their 90 % band"], lines) +
            f"\n\n{number:,} rows, {len(rows)} answered, {memory} more from memory.")


def by_system(rows):
    """Systems with many rows, those with most first; the others together."""
    groups = sorted(grouped(rows, lambda row: row["system"]).items(), key=lambda item: -len(item[1]))
    many = [item for item in groups if len(item[1]) >= MANY]
    few = [item for item in groups if len(item[1]) < MANY]
    lines = [[name, held_word(of), *both(of)] for name, of in many]
    lines.append([f"{len(few)} systems with fewer rows", "most", *both([row for _, of in few for row in of])])
    return markdown(["system", *COLUMNS], lines)


def by_machine(rows):
    groups = grouped(rows, lambda row: f"{row['system']}, {row['machine']}")
    lines = [[name, held_word(of), *both(of)] for name, of in groups.items()]
    lines += [["**all**", "", *both(rows)], ["all that were held out", "yes", *both([row for row in rows if held_out(row)])]]
    return markdown(["system, machine", *COLUMNS], lines)


def tables(document):
    """Each table by its page and the words of its mark."""
    rows = document["rows"]
    answered = [row for row in rows if "skipped" not in row and not row["from_memory"]]
    memory = sum("skipped" not in row and row["from_memory"] for row in rows)
    return {("validation.md", "in short"): totals(answered, len(rows), memory),
            ("validation.md", "by system"): by_system(answered),
            ("validation/errors.md", "by machine"): by_machine(answered)}


def marked(text, words):
    """A page before, in and after the table that is marked with these words."""
    begin, end = f"<!-- {words}, of scripts/validation_table.py -->", "<!-- end of the table -->"
    before, rest = text.split(begin)
    table, after = rest.split(end, 1)
    return f"{before}{begin}\n", table.strip("\n"), f"\n{end}{after}"


def same(one, other):
    """Whether two lines say the same, figures within their slack."""
    figures = r"\d[\d,]*\.?\d* %"
    if re.sub(figures, "%", one) != re.sub(figures, "%", other):
        return False
    for a, b in zip(re.findall(figures, one), re.findall(figures, other)):
        rounding = 0.5 * 10 ** -len(a.partition(".")[2].split(" ")[0])
        a, b = (float(text.rstrip(" %").replace(",", "")) for text in (a, b))
        if abs(a - b) > SLACK + SHARE * b + 2 * rounding:
            return False
    return True


def differences(document):
    """Lines of the pages that say something else than a document."""
    found = []
    for (page, words), table in tables(document).items():
        _, there, _ = marked((DOCS / page).read_text(), words)
        there, wanted = there.splitlines(), table.splitlines()
        if len(there) != len(wanted):
            found.append(f"docs/{page}, {words}: {len(there)} lines, {len(wanted)} are wanted")
        found += [f"docs/{page}, {words}:\n  has   {a}\n  wants {b}" for a, b in zip(there, wanted) if not same(a, b)]
    return found


def write(document):
    """Puts the tables into the pages."""
    for (page, words), table in tables(document).items():
        before, _, after = marked((DOCS / page).read_text(), words)
        (DOCS / page).write_text(before + table + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("document", type=pathlib.Path)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--check", action="store_true", help="compare with the pages")
    group.add_argument("--write", action="store_true", help="put them into the pages")
    options = parser.parse_args()
    document = json.loads(options.document.read_text())
    if options.check:
        found = differences(document)
        print("\n".join([*found, f"{len(found)} differences"]))
        return 1 if found else 0
    if options.write:
        write(document)
        return 0
    for (page, words), table in tables(document).items():
        print(f"{page}, {words}\n\n{table}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
