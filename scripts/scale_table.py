#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and memory of `rehearse predict` against the number of ranks: a Markdown table, the growth law, an SVG.

    scripts/scale_table.py build/release/cli/rehearse [--svg docs/pictures/scale.svg] [--repeat 5] [--ranks 6,48,...]

Beyond Summit's 27,648 GPUs it predicts for a machine of the same nodes and a fat tree of as many levels, made on the fly.
The whole process counts: start, three simulations (the step and both ends of its band), output.
"""
import argparse
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

RANKS = [6, 48, 384, 3456, 13824, 27648, 100002, 300000, 1000002]
HERE = os.path.dirname(os.path.abspath(__file__))


def larger_summit(ranks, folder):
    """A machine file with enough of Summit's nodes for so many ranks."""
    with open(os.path.join(HERE, "..", "models", "machines", "summit.toml")) as file:
        text = file.read()
    nodes = math.ceil(ranks / 6)
    text = re.sub(r"(?m)^count = \d+$", f"count = {nodes}", text, count=1)
    text = re.sub(r"(?m)^down = .*$", f"down = [18, 16, {math.ceil(nodes / (18 * 16))}]", text, count=1)
    path = os.path.join(folder, f"summit-{nodes}.toml")
    with open(path, "w") as file:
        file.write(text)
    return path


def measure(command):
    """Seconds and peak memory (MiB) of one run."""
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: {said}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def svg(rows, path):
    """Log-log, time on the left in blue, memory on the right in orange."""
    width, height, left, top = 560, 320, 76, 20
    x = lambda n: left + (math.log10(n) - 0.5) / 5.7 * (width - 2 * left)
    y = lambda value, low, high: height - 50 - (math.log10(value) - low) / (high - low) * (height - 50 - top)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>']
    for power in range(1, 7):
        out.append(f'<line x1="{x(10**power):.1f}" x2="{x(10**power):.1f}" y1="{top}" y2="{height-50}" stroke="#ddd"/>'
                   f'<text x="{x(10**power):.1f}" y="{height-34}" text-anchor="middle">10^{power}</text>')
    for low, high, side, unit, key, colour in ((-2, 2, "start", "s", 1, "#1f6fb4"), (1, 4, "end", "MiB", 2, "#d9731a")):
        for power in range(low, high + 1):
            place = left - 6 if side == "start" else width - left + 6
            out.append(f'<text x="{place}" y="{y(10.0**power, low, high)+4:.1f}" fill="{colour}" '
                       f'text-anchor="{"end" if side == "start" else "start"}">{10.0**power:g} {unit}</text>')
        points = " ".join(f"{x(row[0]):.1f},{y(row[key], low, high):.1f}" for row in rows)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(row[0]):.1f}" cy="{y(row[key], low, high):.1f}" r="3" fill="{colour}"/>' for row in rows]
    out.append(f'<text x="{width/2}" y="{height-12}" text-anchor="middle">ranks: wall time (blue), peak memory (orange)</text></svg>')
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rehearse")
    parser.add_argument("--svg")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)))
    parser.add_argument("--model", default="resnet50")
    options = parser.parse_args()
    rows = []
    print("| ranks | wall, median | least | peak memory |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for ranks in map(int, options.ranks.split(",")):
            machine = "summit" if ranks <= 27648 else larger_summit(ranks, folder)
            command = [options.rehearse, "predict", "--model", options.model, "--machine", machine, "--devices",
                       str(ranks), "--precision", "mixed", "--mode", "folded"]
            runs = [measure(command) for _ in range(options.repeat)]
            times = [run[0] for run in runs]
            rows.append((ranks, statistics.median(times), max(run[1] for run in runs)))
            print(f"| {ranks:,} | {rows[-1][1]:.3f} s | {min(times):.3f} s | {rows[-1][2]:.0f} MiB |", flush=True)
    big = [row for row in rows if row[0] >= 10000]
    if len(big) > 1:
        slope = math.log(big[-1][1] / big[0][1]) / math.log(big[-1][0] / big[0][0])
        print(f"\nfrom {big[0][0]:,} ranks on, time grows as ranks^{slope:.2f}")
    if options.svg:
        svg(rows, options.svg)


if __name__ == "__main__":
    main()
