#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Efficiency rows of a machine file from measured kernels.

Reads a conv.csv or gemm.csv in the form of Baidu's DeepBench sheets, one row a timed problem:
  conv: device precision mode direction N C H W K R S out_h out_w time_us [snapshot]
  gemm: device precision mode M N K time_us [snapshot]
and prints [[device.efficiency]] rows for models/machines/*.toml. Of each row

  fraction = max(operations / peak, bytes / bandwidth) / measured time,

with two operations a multiply-add and each operand's bytes counted once (gemm: C is read and written, beta = 1). A row of
the file gets the geometric median of the fractions of its pass; `error` is their spread, 1.4826 times the median absolute
deviation of the logarithms, which is one standard deviation when they are normal.

Left out: inference rows, batches below --min-batch, and convolutions of fewer than 3 channels (spectrograms, which tensor
cores pad to 8 channels: no image has them).

  fit_efficiency.py conv.csv --device V100 --precision fp32 --peak 15.67e12 --bandwidth 900e9 --bytes 4 --snapshot da81ba7
"""
import argparse
import csv
import math
import statistics
import sys

PASSES = {"fwd": "forward", "bwd_data": "backward_data", "bwd_weights": "backward_weights"}
TYPES = {"fp32": "f32", "fp16": "f16", "fp16_tc": "f16", "bf16": "bf16"}


def operands(row):
    """(kind, pass, operations, elements moved), or None when the row says nothing about training images."""
    whole = lambda key: int(row[key])
    if "R" not in row:
        m, n, k = whole("M"), whole("N"), whole("K")
        return "matmul", "", 2 * m * n * k, m * k + k * n + 2 * m * n
    n, c, h, w, k, r, s = (whole(key) for key in "NCHWKRS")
    if c < 3:
        return None
    outputs = n * k * whole("out_h") * whole("out_w")
    return "conv2d", PASSES[row["direction"]], 2 * outputs * c * r * s, n * c * h * w + outputs + k * c * r * s


def fractions(path, args):
    """Measured fractions by (kind, pass)."""
    found = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            chosen = row["device"] == args.device and row["precision"] == args.precision and row["mode"] == "train"
            if not chosen or not row["time_us"] or (args.snapshot and row.get("snapshot") != args.snapshot):
                continue
            if int(row["N"]) < args.min_batch:
                continue
            operand = operands(row)
            if operand is None:
                continue
            kind, direction, operations, elements = operand
            bound = max(operations / args.peak, elements * args.bytes / args.bandwidth)
            found.setdefault((kind, direction), []).append(bound / (float(row["time_us"]) * 1e-6))
    return found


def fit(values):
    logs = [math.log(value) for value in values]
    middle = statistics.median(logs)
    return math.exp(middle), 1.4826 * statistics.median(abs(x - middle) for x in logs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="conv.csv, gemm.csv")
    parser.add_argument("--device", required=True)
    parser.add_argument("--precision", required=True, help="as the file names it")
    parser.add_argument("--peak", type=float, required=True, help="operations a second")
    parser.add_argument("--bandwidth", type=float, required=True, help="bytes a second")
    parser.add_argument("--bytes", type=int, required=True, help="of one element")
    parser.add_argument("--snapshot", default="", help="only rows of this commit of DeepBench")
    parser.add_argument("--min-batch", type=int, default=8)
    parser.add_argument("--source", default="Baidu DeepBench (Apache-2.0)")
    args = parser.parse_args()
    rows = 0
    for path in args.files:
        for (kind, direction), values in fractions(path, args).items():
            fraction, spread = fit(values)
            snapshot = f" {args.snapshot}" if args.snapshot else ""
            print(f'[[device.efficiency]]\nkind = "{kind}"')
            if direction:
                print(f'pass = "{direction}"')
            print(f'type = "{TYPES.get(args.precision, args.precision)}"')
            print(f"fraction = {fraction:.3f}\nerror = {spread:.2f}")
            print(f'source = "{args.source}{snapshot}, {args.device}, {len(values)} training rows, geometric median and '
                  f'1.4826 MAD of the logarithm (scripts/fit_efficiency.py)"')
            rows += 1
    if rows == 0:
        sys.exit("fit_efficiency.py: no row matches the device, precision and snapshot")


if __name__ == "__main__":
    main()
