#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of calibrate/neusight/ of NeuSight's measurements.

  neusight_tables.py FOLDER calibrate/neusight        # FOLDER: conv.csv.gz, linear.csv.gz, bmm.csv.gz, vector.csv.gz

One row a shape, one column a board: microseconds on the device, the host's part taken off (`time_us` - `host_us`). A cell is
empty where nothing was measured or the host's part is 30 % or more. Convolutions are all kept; of products and rows of values
those whose `shape_hash` (0 to 99) divides by EVERY, and of the networks' sizes all products.

The host's part is the shortest call of a board and operator, which says nothing where all calls are long: of the L4 only sizes
of networks were measured, so that `host_us` is 768 of the 1,069 us of its shortest addition, whose 252 MB take 1,050 at the 0.78
of the bandwidth that all longer ones reach. There a call is taken to wait as long as a batch of products on that board, times
what calls of the operator wait on boards with small sizes (REFERENCES), over their batches.
"""
import csv
import gzip
import statistics
import sys

BOARDS = ["v100-pcie", "p100-pcie", "p4", "t4", "l4", "h100-sxm", "mi100", "mi210"]
OF_DEVICE = {"V100": "v100-pcie", "P100": "p100-pcie", "P4": "p4", "T4": "t4", "L4": "l4", "H100": "h100-sxm", "MI100": "mi100",
             "MI210": "mi210"}
# What the names of the kernels say of the algorithm that ran.
FAMILY = {"WINOGRAD": "w", "WINOGRAD_NONFUSED": "n", "IMPLICIT_PRECOMP_GEMM": "g", "IMPLICIT_GEMM": "d", "GEMM": "d", "FFT": "f"}
EVERY = {"linear": 1, "bmm": 10, "vector": 12, "softmax": 3, "ln": 3}
HOST = 0.3
REFERENCES = ["V100", "P4", "T4"]
HEAD = """# SPDX-License-Identifier: Apache-2.0
# NeuSight (https://github.com/sitar-lab/NeuSight, commit 6945927, MIT, Georgia Institute of Technology and Microsoft; "Forecasting
# GPU Performance for Deep Learning Training and Inference", ASPLOS 2025), measured with PyTorch 2.1.0, CUDA 12.1, cuDNN 8.9.2.
# Made by scripts/neusight_tables.py, which says what is kept: microseconds on the device, one row a shape, one column a board.
"""


def rows_of(folder, name):
    with gzip.open(f"{folder}/{name}.csv.gz", "rt") as file:
        yield from csv.DictReader(file)


def host_parts(folder):
    """(device, operator) to microseconds of products and rows of values."""
    shortest, small = {}, set()
    for name in ("linear", "bmm", "vector"):
        for row in rows_of(folder, name):
            key = row["device"], row["op"]
            shortest[key] = float(row["host_us"])
            if row["part"] == "grid":
                small.add(key)
    parts = dict(shortest)
    for device, op in shortest:
        if (device, op) not in small and op != "bmm":
            times = statistics.median(shortest[r, op] / shortest[r, "bmm"] for r in REFERENCES)
            parts[device, op] = min(shortest[device, op], times * shortest[device, "bmm"])
    return parts


def on_device(row, parts):
    total, host = float(row["time_us"]), parts[row["device"], row["op"]] if parts else float(row["host_us"])
    return f"{total - host:.4g}" if host < HOST * total else ""


def table(rows, key, parts=None, with_family=False):
    shapes = {}
    for row in rows:
        cell = on_device(row, parts)
        if not cell:
            continue
        cells = shapes.setdefault(key(row), {})
        cells[OF_DEVICE[row["device"]]] = cell + (FAMILY[row["algorithm"]] if with_family else "")
    return shapes


def write(path, names, shapes, families=""):
    boards = [b for b in BOARDS if any(b in cells for cells in shapes.values())]
    with open(path, "w") as out:
        out.write(HEAD + families + ",".join(names + boards) + "\n")
        for key in sorted(shapes):
            out.write(",".join([str(k) for k in key] + [shapes[key].get(b, "") for b in boards]) + "\n")


def main(folder, target):
    whole = lambda row, names: tuple(int(row[n]) for n in names)
    sizes = ["N", "C", "H", "K"]
    write(f"{target}/convolutions.csv", sizes, table(rows_of(folder, "conv"), lambda r: whole(r, sizes), with_family=True),
          "# 3x3 forward, stride 1, padding 1, f32, images of H x H. The letter is the family of the kernels that ran (their names):\n"
          "# w Winograd fused, n Winograd not fused, g implicit GEMM, d direct, f FFT.\n")
    kept = lambda r, op: r["part"] == "network" or int(r["shape_hash"]) % EVERY[op] == 0
    sizes = ["batch", "rows", "depth", "cols"]
    products, parts = {}, host_parts(folder)
    for op in ("linear", "bmm"):
        products.update(table((r for r in rows_of(folder, op) if kept(r, op)), lambda r: (op, r["part"]) + whole(r, sizes), parts))
    write(f"{target}/products.csv", ["op", "part"] + sizes, products)
    vector = (r for r in rows_of(folder, "vector") if int(r["shape_hash"]) % EVERY.get(r["op"], EVERY["vector"]) == 0)
    write(f"{target}/vectors.csv", ["op", "rows", "cols"], table(vector, lambda r: (r["op"],) + whole(r, ["rows", "cols"]), parts))


if __name__ == "__main__":
    main(*sys.argv[1:])
