#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the errors of published rows, by system and machine, to those that were recorded, and to the tables of docs/validation.md.

  hold_published.py build/dev/cli/rehearse tests/data/validation/published.csv            # exit 1 when one is worse
  hold_published.py build/dev/cli/rehearse tests/data/validation/published.csv --record   # writes what there is now, tables too

Worse is a median or a 90 % quantile that is larger by more than 0.2 % of the published figure and 2 % of itself, and a group
that lost an answer. The last line of the file is all rows together.
"""
import argparse
import csv
import json
import subprocess
import sys

import validation_table

KINDS = ["cold", "anchored"]
COLUMNS = ["system", "machine"] + [f"{kind}_{what}" for kind in KINDS for what in ("rows", "median", "p90")]
SLACK, SHARE = 0.002, 0.02


def document_of(binary, options):
    command = [binary, "validate", "--set", "published", "--format", "json", *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def figures_of(document):
    """One record a group of `validate --set published`, and one of all rows."""
    records = []
    for group in document["groups"]:
        record = {"system": group["system"], "machine": group["machine"]}
        for kind in KINDS:
            record[f"{kind}_rows"] = group.get(f"{kind}_rows", 0)
            for what in ("median", "p90"):
                record[f"{kind}_{what}"] = group.get(f"{kind}_{what}_error")
        records.append(record)
    everything = {"system": "all", "machine": "all"}
    for kind in KINDS:
        summary = document["summary"].get(kind, {"rows": 0})
        everything[f"{kind}_rows"] = summary["rows"]
        for what in ("median", "p90"):
            everything[f"{kind}_{what}"] = summary.get(f"{what}_error")
    return sorted(records, key=lambda r: (r["system"], r["machine"])) + [everything]


def written(record):
    """The texts of a record's line."""
    return ["" if record[c] is None else f"{record[c]:.4f}" if isinstance(record[c], float) else str(record[c]) for c in COLUMNS]


def worse(now, before):
    """What is worse than recorded, and what is so much better that it should be recorded."""
    found, better = [], []
    for kind in KINDS:
        if now[f"{kind}_rows"] < int(before[f"{kind}_rows"]):
            found.append(f"{kind}: {now[f'{kind}_rows']} rows are answered, {before[f'{kind}_rows']} were")
        for what in ("median", "p90"):
            key = f"{kind}_{what}"
            if now[key] is None or before[key] == "":
                continue
            change = now[key] - float(before[key])
            if abs(change) > SLACK + SHARE * float(before[key]):
                text = f"{kind} {what} error {100 * now[key]:.2f} %, recorded {100 * float(before[key]):.2f} %"
                (found if change > 0 else better).append(text)
    return found, better


def compared(records, recorded):
    """Prints every difference that matters; how many groups are worse."""
    bad = 0
    now = {(r["system"], r["machine"]): r for r in records}
    for before in recorded:
        name = (before["system"], before["machine"])
        if name not in now:
            print(f"{name[0]}, {name[1]}: recorded, and not there any more")
            bad += 1
            continue
        found, better = worse(now[name], before)
        for text in found:
            print(f"{name[0]}, {name[1]}: worse: {text}")
        for text in better:
            print(f"{name[0]}, {name[1]}: better: {text}; --record keeps it")
        bad += bool(found)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("recorded")
    parser.add_argument("--record", action="store_true", help="write the file anew instead of comparing")
    parser.add_argument("--filter", help="only rows that match, as validate's; all groups of the file must be among them")
    arguments = parser.parse_args()
    document = document_of(arguments.binary, ["--filter", arguments.filter] if arguments.filter else [])
    records = figures_of(document)
    if arguments.record:
        with open(arguments.recorded, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(written(record) for record in records)
        if not arguments.filter:
            validation_table.write(document)
        return 0
    with open(arguments.recorded, encoding="utf-8", newline="") as file:
        bad = compared(records, list(csv.DictReader(file)))
    print("published rows: as good as recorded" if bad == 0 else f"{bad} groups are worse than recorded")
    pages = [] if arguments.filter else validation_table.differences(document)
    if pages:
        print(*pages, "scripts/validation_table.py puts the new tables into the pages: all.json --write", sep="\n")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
