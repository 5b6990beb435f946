#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What of the founding systems rests on a figure that one run told of: rows with it and without, computed anew.

  standing_constants.py build/dev/cli/rehearse                                       # prints the table
  standing_constants.py build/dev/cli/rehearse --check docs/systems/cosmoflow.md     # exit 1 where the page has another

Without a figure is what the other rules say: input of samples for nothing, steps as the program counts them elsewhere.
An error says so, too, where a figure changes no row: then it is dead.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

from standing_bounds import missing

# What it is, the run that told of it, whose rows rest on it, and what stands in its place.
CONSTANTS = [
    ("30 ms a sample beside POWER9", "HAL, 64 V100, CosmoFlow of v0.7",
     {"Summit, 6 V100": "cosmoflow-small--cori-summit--037", "Summit, 1,020 V100": "cosmoflow-small--cori-summit--054",
      "Longhorn, 128 V100": "mlperf-hpc-other-028"},
     "model = 'CosmoFlow-(small|MLPerf)', machine = 'Summit|Longhorn'", 'loader = "ahead"'),
    ("9.4 ms a sample in MXNet", "Selene, 128 A100, CosmoFlow of v1.0",
     {"JUWELS Booster, 1,024 A100": "mlperf-hpc-other-010", "JUWELS Booster, 512 A100": "mlperf-hpc-other-015",
      "Perlmutter, 512 A100": "mlperf-hpc-other-016", "Perlmutter, 1,024 A100": "mlperf-hpc-other-019",
      "Selene, 1,024 A100": "mlperf-hpc-other-023"},
     "model = 'CosmoFlow-MLPerf', provenance = '.*hpc_results_v1\\.0:.*mxnet.*'", 'loader = "ahead"'),
    ("samples at 289 MB/s", "15 PF, climate network, one node: its paper's 13 %",
     {"Cori, climate network, one node": "sc17-15pf--cori-knl--002",
      "Cori, climate network, 9,608 nodes": "sc17-15pf--cori-knl--009"},
     "system = 'SC17 15PF.*', model = 'ClimateNet'", 'loader = "inline"'),
    ("100 steps counted, 70 there", "no run: sequences of SQuAD over eight times 320",
     {"Lambda, 8 A100, BERT-base f16": "throughput-047"},
     "system = 'Lambda, PyTorch', model = 'BERT-.*@384', batch_per_device = '320', n_devices = '8'", 'counted = "100/101"'),
]


def rows_of(binary, names, rules=None):
    words = ["validate", "--set", "published", "--filter", "|".join(f"({name})" for name in names), "--rows"]
    words += ["--format", "json", "-q"]
    made = subprocess.run([binary, *words, *(["--rules", rules] if rules else [])], capture_output=True, text=True)
    if made.returncode != 0:
        sys.exit(f"{' '.join(words)}: {made.stderr}")
    return {row["id"]: row for row in json.loads(made.stdout)["rows"]}


def off(row):
    return f"{100 * (row['cold_predicted'] / row['published'] - 1):+.0f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--check", metavar="PAGE")
    arguments = parser.parse_args()
    names = [name for constant in CONSTANTS for name in constant[2].values()]
    with tempfile.TemporaryDirectory() as folder:
        rules = pathlib.Path(folder) / "without.toml"
        rules.write_text("".join(f'[[rule]]\nwhy = "without: {what}"\nwhen = {{ {when} }}\n{then}\n\n'
                                 for what, _, _, when, then in CONSTANTS))
        with_it, without = rows_of(arguments.binary, names), rows_of(arguments.binary, names, str(rules))
    lines, failed = [], False
    for what, told, rows, _, _ in CONSTANTS:
        for where, name in rows.items():
            before, after = with_it[name], without[name]
            if before["cold_predicted"] == after["cold_predicted"]:
                print(f"{what}: {where} is the same without", file=sys.stderr)
                failed = True
            lines.append(f"| {what} | {told} | {where} | {off(before)} | {off(after)} |")
    sys.exit(1 if missing(lines, arguments.check) or failed else 0)


if __name__ == "__main__":
    main()
