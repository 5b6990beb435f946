#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of accuracy.sh as tables: each case, then median and 90th percentile of the errors, and how many measured
steps lie in the band. Errors are |predicted - measured| / measured; a percentile is the smallest error that so many of
the cases do not exceed."""
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


def main(path):
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


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} rows.csv")
    main(sys.argv[1])
