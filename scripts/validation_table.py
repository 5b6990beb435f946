#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/validation.md from `rehearse validate --set published --format json --output all.json`.

    scripts/validation_table.py all.json
"""
import json
import statistics
import sys

# Systems at whose rows somebody looked while their machine or rules were made; the others are held out.
SEEN = {"Azure BatchAI Horovod": "no", "ParaDL (ABCI) logs": "no", "Megatron sequence-parallel (2205.05198)": "in part",
        "Megatron-LM PTD-P (SC21 Table 1)": "in part", "NVIDIA DeepLearningExamples, TensorFlow": "in part"}


def p90(errors):
    ordered = sorted(errors)
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


def cells(rows, predicted, low, high):
    rows = [row for row in rows if predicted in row]
    if not rows:
        return ["", "", "", ""]
    errors = [abs(row[predicted] - row["published"]) / row["published"] for row in rows]
    inside = sum(row[low] <= row["published"] <= row[high] for row in rows)
    return [str(len(rows)), f"{100 * statistics.median(errors):.1f} %", f"{100 * p90(errors):.0f} %",
            f"{100 * inside / len(rows):.0f} %"]


def line(name, held_out, rows):
    anchored = [row for row in rows if row.get("anchor")]
    both = (cells(anchored, "predicted", "low", "high") +
            cells(rows, "cold_predicted", "cold_low", "cold_high"))
    return "| " + " | ".join([name, held_out, *both]) + " |"


def main():
    with open(sys.argv[1]) as file:
        rows = json.load(file)["rows"]
    answered = [row for row in rows if "skipped" not in row and not row["from_memory"]]
    systems = {}
    for row in answered:
        systems.setdefault((row["system"], row["machine"]), []).append(row)
    print("| system, machine | held out | anchored: rows | median | p90 | in band | cold: rows | median | p90 | in band |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (system, machine), of in systems.items():
        print(line(f"{system}, {machine}", SEEN.get(system, "yes"), of))
    print(line("**all**", "", answered))
    print(line("all that were held out", "yes", [row for row in answered if SEEN.get(row["system"], "yes") == "yes"]))
    print(f"\n{len(rows)} rows, {len(answered)} answered, "
          f"{sum('skipped' not in row and row['from_memory'] for row in rows)} more from memory.")


if __name__ == "__main__":
    main()
