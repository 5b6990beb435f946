#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's sparse nn.EmbeddingBag with plain SGD on this host: the reference implementation of DLRM's way.

  embedding_reference.py [--tables 8] [--lookups 100] [--rows 200000] [--width 64] [--batch 256] [--threads N] [--skew 0]

`rehearse bench embedding` times our ways on the same sizes (docs/systems/dlrm.md).
"""
import argparse
import statistics
import time

import torch


def picked(rows, skew, count, generator):
    """Row numbers by Zipf's law; 0: all rows alike."""
    if skew == 0:
        return torch.randint(rows, (count,), generator=generator)
    weights = torch.arange(1, rows + 1, dtype=torch.double).pow(-skew).cumsum(0)
    at = torch.rand(count, generator=generator, dtype=torch.double) * weights[-1]
    return torch.randperm(rows, generator=generator)[torch.searchsorted(weights, at).clamp(max=rows - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("tables", 8), ("lookups", 100), ("rows", 200000), ("width", 64), ("batch", 256), ("steps", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--threads", type=int, default=0, help="0: PyTorch's default")
    parser.add_argument("--skew", type=float, default=0)
    asked = parser.parse_args()
    if asked.threads:
        torch.set_num_threads(asked.threads)
    generator = torch.Generator().manual_seed(1)
    bags = [torch.nn.EmbeddingBag(asked.rows, asked.width, mode="sum", sparse=True) for _ in range(asked.tables)]
    optimizer = torch.optim.SGD([bag.weight for bag in bags], lr=0.25)
    offsets = torch.arange(asked.batch) * asked.lookups
    ids = [picked(asked.rows, asked.skew, asked.batch * asked.lookups, generator) for _ in bags]
    gradient = torch.ones(asked.batch, asked.width)
    times = {"forward": [], "backward": [], "update": []}
    for _ in range(asked.steps):
        optimizer.zero_grad(set_to_none=True)
        marks = [time.perf_counter()]
        sums = [bag(each, offsets) for bag, each in zip(bags, ids)]
        marks.append(time.perf_counter())
        torch.autograd.backward(sums, [gradient] * len(sums))
        marks.append(time.perf_counter())
        optimizer.step()
        marks.append(time.perf_counter())
        for name, begin, end in zip(times, marks, marks[1:]):
            times[name].append(end - begin)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, batch {asked.batch}")
    for name, seconds in times.items():
        print(f"{name:9} {1e3 * statistics.median(seconds):9.2f} ms")


if __name__ == "__main__":
    main()
