#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of accuracy.sh as tables: each case, then median and 90th percentile of the errors, and how many measured
steps lie in the band. Errors are |predicted - measured| / measured; a percentile is the smallest error that so many of
the cases do not exceed.

  accuracy_summary.py rows.csv
  accuracy_summary.py --place local --model mlp TIMES   a row a plan of TIMES, each line "plan step low high
                                                        measured", the first three as predicted"""
import argparse
import collections
import csv
import math
import statistics
import sys


def percentile(values, share):
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def summary(name, rows):
    errors = [abs(r["error"]) for r in rows]
    inside = sum(r["inside"] for r in rows)
    noise = statistics.median(float(r["noise"]) for r in rows)
    return (f"| {name} | {len(rows)} | {100 * statistics.median(errors):.1f} % | {100 * percentile(errors, 0.9):.1f} % "
            f"| {100 * inside / len(rows):.0f} % | {100 * noise:.1f} % |")


def rows_of(path, place, model):
    """One a plan: the medians of its turns, and the robust deviation of what was measured (1.4826 x median distance)
    as a part of it."""
    turns = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for plan, *seconds in map(str.split, file):
            turns[plan].append([float(s) for s in seconds])
    out = csv.writer(sys.stdout, lineterminator="\n")
    for plan, rows in turns.items():
        *predicted, measured = map(statistics.median, zip(*rows))
        noise = 1.4826 * statistics.median(abs(row[-1] - measured) for row in rows) / measured
        out.writerow([place, model, plan, *predicted, measured, noise, len(rows)])


def summarize(path):
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        sys.exit(f"{path}: no rows yet")
    print("| place | network | plan | predicted | band | measured | noise | error | in band |\n|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        predicted, low, high, measured = (1e3 * float(row[k]) for k in ("predicted_s", "low_s", "high_s", "measured_s"))
        row["error"], row["inside"] = predicted / measured - 1, low <= measured <= high
        print(f"| {row['place']} | {row['model']} | {row['plan']} | {predicted:.1f} ms | {low:.1f} to {high:.1f} | {measured:.1f} ms "
              f"| {100 * float(row['noise']):.1f} % | {100 * row['error']:+.1f} % | {'yes' if row['inside'] else 'no'} |")
    print("\n| cases | number | median error | 90 % of errors are under | in the band | noise |\n|---|---|---|---|---|---|")
    for key in ("place", "model", "plan"):
        for value in dict.fromkeys(row[key] for row in rows):
            print(summary(value, [row for row in rows if row[key] == value]))
    print(summary("all", rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--place")
    parser.add_argument("--model")
    options = parser.parse_args()
    if options.place:
        rows_of(options.file, options.place, options.model)
    else:
        summarize(options.file)


if __name__ == "__main__":
    main()
