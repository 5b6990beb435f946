#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a step of DLRM as its reference implementation had it, and Rehearse's beside it.

  embedding_reference.py [--tables 8] [--lookups 100] [--rows 200000] [--width 64] [--batch 256] [--threads N] [--skew 0]
  embedding_reference.py --rehearse build/dev/cli/rehearse [--json FILE]    # also `bench embedding`, and the ratios
  embedding_reference.py --rehearse build/dev/cli/rehearse --rows 1000000   # dlrm-small: also the step of `run`

Two ways of PyTorch, sparse nn.EmbeddingBag with plain SGD:
  PyTorch 2019  table.add_(sparse gradient) as it was then: rows that were picked twice are summed (coalesce), then each
                row is added by three tensor operations of its own (select, select, add_), all in one thread. Version
                1.13 still has this code, for tables that are not contiguous, where several threads share the rows: it
                runs here on a table whose rows lie twice as far apart, in one thread.
                Forward and backward are today's, so that it is rather faster than it was.
  PyTorch       what this version does
One update by each way must leave the same table. Dense layers are not timed with PyTorch, as many builds of it multiply
by a plain BLAS: its tables alone over the whole step of `run` are less than what the whole steps' ratio would be.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)

RATE = 0.25
DLRM_SMALL = (8, 100, 1000000, 64)


def picked(rows, skew, count, generator):
    """Row numbers by Zipf's law; 0: all rows alike."""
    if skew == 0:
        return torch.randint(rows, (count,), generator=generator)
    weights = torch.arange(1, rows + 1, dtype=torch.double).pow(-skew).cumsum(0)
    at = torch.rand(count, generator=generator, dtype=torch.double) * weights[-1]
    return torch.randperm(rows, generator=generator)[torch.searchsorted(weights, at).clamp(max=rows - 1)]


def update_now(tables, gradients):
    for table, gradient in zip(tables, gradients):
        table.add_(gradient, alpha=-RATE)


def update_2019(tables, gradients):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    update_now(tables, gradients)
    torch.set_num_threads(threads)


class Bags:
    def __init__(self, asked):
        generator = torch.Generator().manual_seed(1)
        self.bags = [torch.nn.EmbeddingBag(asked.rows, asked.width, mode="sum", sparse=True,
                                           _weight=torch.ones(asked.rows, asked.width)) for _ in range(asked.tables)]
        # Ones: pages of zeros are none before they are written. One table of rows that lie apart serves all, so as not to
        # take twice the memory.
        self.apart = torch.ones(asked.rows, 2 * asked.width)[:, :asked.width]
        self.offsets = torch.arange(asked.batch) * asked.lookups
        self.ids = [picked(asked.rows, asked.skew, asked.batch * asked.lookups, generator) for _ in self.bags]
        self.gradient = torch.ones(asked.batch, asked.width)

    def check(self):
        """The two ways to update, on the first table."""
        self.forward_backward()
        gradient = self.bags[0].weight.grad
        update_now([self.bags[0].weight.data], [gradient])
        update_2019([self.apart], [gradient])
        if not torch.equal(self.bags[0].weight.data, self.apart):  # whole quarters: sums are exact in any order
            sys.exit("the two ways to update leave different tables")

    def forward_backward(self):
        for bag in self.bags:
            bag.weight.grad = None
        begin = time.perf_counter()
        sums = [bag(each, self.offsets) for bag, each in zip(self.bags, self.ids)]
        between = time.perf_counter()
        torch.autograd.backward(sums, [self.gradient] * len(sums))
        return between - begin, time.perf_counter() - between

    def step(self, way):
        forward, backward = self.forward_backward()
        gradients = [bag.weight.grad for bag in self.bags]
        begin = time.perf_counter()
        if way == "PyTorch 2019":
            update_2019([self.apart] * len(gradients), gradients)
        else:
            update_now([bag.weight.data for bag in self.bags], gradients)
        return forward, backward + time.perf_counter() - begin


def pytorch_rows(asked):
    """(way, forward, backward and update) in seconds, medians."""
    bags = Bags(asked)
    bags.check()
    ways = ("PyTorch 2019", "PyTorch")
    times = {way: [] for way in ways}
    for _ in range(asked.steps):  # in turn, so that both see the same load of the host
        for way in ways:
            times[way].append(bags.step(way))
    return [(way, *(statistics.median(part) for part in zip(*times[way]))) for way in ways]


def printed_by(asked, *command):
    command = [asked.rehearse, *command, "--format", "json", "--quiet"]
    threads = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env=threads).stdout)


def rehearse_rows(asked):
    """The same of `bench embedding`."""
    problem = f"embeddingbag:n{asked.batch}t{asked.tables}l{asked.lookups}v{asked.rows}c{asked.width}:f32:forward"
    said = printed_by(asked, "bench", "embedding", problem, "--skew", str(asked.skew), "--rounds", str(asked.steps),
                      "--threads", str(torch.get_num_threads()))
    return [(row["way"], row["forward_s"], row["update_s"]) for row in said["rows"]]


def rehearse_step(asked):
    """Seconds of a step of dlrm-small by `run`, on one rank with as many threads."""
    said = printed_by(asked, "run", "--model", "dlrm-small", "--batch", str(asked.batch), "--steps",
                      str(asked.steps + 1), "--momentum", "0", "--plan", "data:tables=shared")
    return said["points"][0]["step_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("tables", 8), ("lookups", 100), ("rows", 200000), ("width", 64), ("batch", 256), ("steps", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's default")
    parser.add_argument("--skew", type=float, default=0)
    parser.add_argument("--rehearse", help="the program, whose ways are timed beside PyTorch's")
    parser.add_argument("--json", help="write the rows to this file, too")
    asked = parser.parse_args()
    if min(asked.tables, asked.lookups, asked.rows, asked.width, asked.batch, asked.steps) < 1:
        parser.error("sizes and --steps are at least 1")
    if asked.threads:
        torch.set_num_threads(asked.threads)
    rows = pytorch_rows(asked) + (rehearse_rows(asked) if asked.rehearse else [])
    lookups = asked.tables * asked.lookups * asked.batch
    reference = rows[0][1] + rows[0][2]
    document = []
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {lookups} lookups of {4 * asked.width} bytes")
    print(f"{'way':14}{'forward':>12}{'backward and update':>21}{'a lookup':>11}{'over 2019':>11}")
    for way, forward, update in rows:
        both = forward + update
        document.append({"way": way, "forward_s": forward, "update_s": update, "over_2019": reference / both})
        print(f"{way:14}{1e3 * forward:9.2f} ms{1e3 * update:18.2f} ms{1e9 * both / lookups:8.0f} ns{reference / both:11.2f}")
    if asked.rehearse and (asked.tables, asked.lookups, asked.rows, asked.width) == DLRM_SMALL and asked.skew == 0:
        step = rehearse_step(asked)
        document.append({"way": "run", "step_s": step, "over_2019": reference / step})
        print(f"the whole step of dlrm-small by `rehearse run`: {1e3 * step:.2f} ms; "
              f"over 2019's tables alone {reference / step:.2f}")
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


if __name__ == "__main__":
    main()
