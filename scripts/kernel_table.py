#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our kernels against oneDNN's, as a table for docs/performance/convolutions.md: times every implementation with `rehearse bench`,
in turn in one process, and compares the fastest of each side.

  scripts/kernel_table.py --suite resnet50 --suite vgg16 --batch 8 --budget 600
  scripts/kernel_table.py conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward --budget 10

A time is the least of its rounds' medians: what disturbs a run only ever makes it longer. Ratios are oneDNN's time over
ours: above 1 we are faster. "direct" is the better of oneDNN's direct convolution on blocks of channels and on NCHW,
"best" its Winograd too.
"""
import argparse
import collections
import json
import math
import pathlib
import subprocess
import sys
import tempfile

PASSES = ["forward", "backward_data", "backward_weights"]


def least_times(samples):
    """{problem: {(backend, algorithm): seconds}} of Google Benchmark's document."""
    times = collections.defaultdict(dict)
    for run in samples["benchmarks"]:
        problem, backend, *algorithm = run["name"].split("/")
        key = (backend, algorithm[0] if algorithm else "")
        times[problem][key] = min(run["median_s"], times[problem].get(key, math.inf))
    return times


def best(times, wanted):
    """(seconds, algorithm) of the fastest that is wanted, or None."""
    found = [(seconds, algorithm) for (backend, algorithm), seconds in times.items() if wanted(backend, algorithm)]
    return min(found) if found else None


def compare(document, samples):
    """A row a problem that both sides run."""
    work = {row["problem"]: row["flops_per_s"] * row["median_s"] for row in document["rows"]}
    rows = []
    for problem, times in least_times(samples).items():
        ours = best(times, lambda backend, _: backend == "cpu")
        direct = best(times, lambda backend, algorithm: backend == "onednn" and algorithm != "winograd")
        theirs = best(times, lambda backend, _: backend == "onednn")
        if ours is None or direct is None:
            continue
        rows.append({"problem": problem, "pass": problem.rsplit(":", 1)[1], "ours_s": ours[0], "ours": ours[1],
                     "direct_s": direct[0], "best_s": theirs[0], "best": theirs[1] or "onednn",
                     "of_direct": direct[0] / ours[0], "of_best": theirs[0] / ours[0],
                     "of_peak": work[problem] / ours[0] / document["peak_flops_per_s"]})
    return rows


def summary(rows):
    """(name, rows, geometric means and minima of both ratios) of each pass and of all."""
    groups = [(name, [row for row in rows if row["pass"] == name]) for name in PASSES] + [("all", rows)]
    for name, group in groups:
        if not group:
            continue
        def mean(key, those=group):
            return math.exp(sum(math.log(row[key]) for row in those) / len(those))
        worst = min(group, key=lambda row: row["of_best"])
        yield name, len(group), mean("of_direct"), min(r["of_direct"] for r in group), mean("of_best"), worst


def markdown(title, document, rows):
    lines = [f"### {title}", "",
             f"{document['configuration']['threads']} thread(s), peak {document['peak_flops_per_s'] / 1e9:.0f} GFLOP/s; ms",
             "", "| problem | ours | oneDNN direct | oneDNN best | of direct | of best | of peak |",
             "|---|---|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['problem']} | {1e3 * row['ours_s']:.3g} ({row['ours']}) | {1e3 * row['direct_s']:.3g} | "
                     f"{1e3 * row['best_s']:.3g} ({row['best']}) | {row['of_direct']:.2f} | {row['of_best']:.2f} | "
                     f"{100 * row['of_peak']:.0f} % |")
    lines += ["", "| pass | problems | mean of direct | least | mean of best | least | which |", "|---|---|---|---|---|---|---|"]
    for name, count, direct, least_direct, of_best, worst in summary(rows):
        lines.append(f"| {name} | {count} | **{direct:.2f}** | {least_direct:.2f} | **{of_best:.2f}** | "
                     f"{worst['of_best']:.2f} | {worst['problem']} |")
    return "\n".join(lines) + "\n"


def measure(options, arguments):
    """The two documents of one bench."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "samples.json")
        command = [options.rehearse, "bench", options.kind, *arguments, "--budget", str(options.budget), "--format", "json",
                   "--out", str(out)] + ([] if options.check else ["--no-check"])
        if options.filter:
            command += ["--filter", options.filter]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {result.returncode}")
        return json.loads(result.stdout), json.loads(out.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", help="problem strings, besides or instead of suites")
    parser.add_argument("--suite", action="append", default=[], help="a network; one table each")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--kind", choices=["conv", "gemm"], default="conv")
    parser.add_argument("--budget", type=float, default=300, help="seconds of timing a table")
    parser.add_argument("--filter", help="only the problems that contain this regular expression, as of `rehearse bench`")
    parser.add_argument("--check", action="store_true", help="hold every result to the reference first: minutes more")
    parser.add_argument("--rehearse", default="build/release/cli/rehearse")
    options = parser.parse_args()
    tables = [(name, ["--suite", name, "--batch", str(options.batch)]) for name in options.suite]
    if options.problems:
        tables.append(("problems", options.problems))
    if not tables:
        parser.error("give --suite NAME or problem strings")
    for title, arguments in tables:
        document, samples = measure(options, arguments)
        print(markdown(f"{title}, batch {options.batch}" if title != "problems" else title, document,
                       compare(document, samples)), flush=True)


if __name__ == "__main__":
    main()
