#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network with PyTorch, on one process or with DistributedDataParallel over gloo, and says what a step takes.

  pytorch_train.py resnet --batch 16 --steps 20                      one process
  pytorch_train.py bert --profile bert.json.gz                       also a trace of torch.profiler for `calibrate --trace`
  pytorch_train.py dense --export dense.onnx                         the network as Rehearse reads it, nothing trained
  pytorch_train.py resnet --ranks 2                                  two processes of this host, over gloo
  pytorch_train.py resnet --ranks 2 --rounds 9 --steps 3             in turns: rank 0 alone, then all, so that both see the same host
  RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500 pytorch_train.py resnet      one process of several hosts

Prints one line of JSON: the network, ranks, batch, and the median of the steps without the warm-up, of the slowest rank. With --rounds also
the median of rank 0's steps while the others wait (alone_s), and of the ratios of both within a round; --profile is then of rank 0 alone.
"""
import argparse
import gzip
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """ResNet's basic block (He et al. 2016, figure 5)."""

    def __init__(self, before, filters, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, filters, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(filters)
        self.conv2 = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(filters)
        self.short = None
        if stride != 1 or before != filters:
            self.short = nn.Sequential(nn.Conv2d(before, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return functional.relu(y + (x if self.short is None else self.short(x)))


class ResNet(nn.Module):
    """ResNet-18's stages on small images."""

    def __init__(self, width=32, classes=10):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        blocks, before = [], width
        for stage in range(4):
            for block in range(2):
                filters = width << stage
                blocks.append(Block(before, filters, 2 if stage > 0 and block == 0 else 1))
                before = filters
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(before, classes)

    def forward(self, x):
        x = self.blocks(functional.relu(self.bn(self.conv(x))))
        return self.fc(torch.flatten(self.pool(x), 1))


class Layer(nn.Module):
    """A block of an encoder (Vaswani et al. 2017), its products as BERT has them."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (each(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for each in (self.query, self.key, self.value))
        scores = torch.softmax(q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5, -1)
        y = (scores @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.narrow(functional.gelu(self.wide(x))))


class Bert(nn.Module):
    """An encoder that predicts every word."""

    def __init__(self, words=1000, tokens=32, width=128, heads=4, layers=2):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Parameter(torch.zeros(1, tokens, width))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.scores = nn.Linear(width, words)

    def forward(self, ids):
        return self.scores(self.layers(self.norm(self.words(ids) + self.places)))


class Dense(nn.Module):
    """Three dense layers, whose gradients take longer to sum than to make."""

    def __init__(self, width=1024):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(3072, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                    nn.Linear(width, 10))

    def forward(self, x):
        return self.layers(x)


def images(batch):
    return torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))


def tokens(batch):
    return torch.randint(0, 1000, (batch, 32)), torch.randint(0, 1000, (batch, 32))


NETWORKS = {"resnet": (ResNet, images), "bert": (Bert, tokens), "dense": (Dense, images)}


def loss_of(scores, labels):
    return functional.cross_entropy(scores.reshape(-1, scores.shape[-1]), labels.reshape(-1))


def write_trace(profile, path, rank, ranks):
    """The profile in Kineto's format, also by a PyTorch that was built without Kineto (Debian's): the same keys."""
    events = []
    for event in profile.events():
        args = {"External id": event.id}
        if event.input_shapes:
            args["Input Dims"] = event.input_shapes
        if event.sequence_nr >= 0:
            args["Sequence number"] = event.sequence_nr
        named = event.name.startswith(("ProfilerStep", "Optimizer.", "DistributedDataParallel", "enumerate("))
        events.append({"ph": "X", "cat": "user_annotation" if named else "cpu_op", "name": event.name, "pid": os.getpid(),
                       "tid": event.thread, "ts": event.time_range.start, "dur": event.time_range.elapsed_us(), "args": args})
    document = {"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": ranks},
                "traceEvents": events}
    opened = gzip.open(path, "wt", 9) if path.endswith(".gz") else open(path, "w")
    with opened as file:
        json.dump(document, file)


def train(options):
    ranks, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    make, samples = NETWORKS[options.network]
    network = make()
    if ranks > 1:
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
        network = nn.parallel.DistributedDataParallel(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = samples(options.batch)

    def step():
        optimizer.zero_grad(set_to_none=options.set_to_none)
        loss_of(network(inputs), labels).backward()
        optimizer.step()

    def timed(count):
        times = []
        for _ in range(count):
            start = time.perf_counter()
            step()
            times.append(time.perf_counter() - start)
        return times

    def profiled():
        schedule = torch.profiler.schedule(wait=0, warmup=1, active=options.profile_steps, repeat=1)

        def ready(profile):
            write_trace(profile, options.profile.replace("RANK", str(rank)), rank, ranks if options.rounds == 0 else 1)

        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True,
                                    schedule=schedule, on_trace_ready=ready) as profile:
            for _ in range(options.profile_steps + 1):
                step()
                profile.step()

    timed(options.warm_up)
    if options.rounds > 0:
        together, alone = network, make()
        optimizers = {together: optimizer, alone: torch.optim.SGD(alone.parameters(), lr=0.01, momentum=0.9)}
        times, one, ratios = [], [], []
        for turn in range(options.rounds + 1):  # the first one is a warm-up
            dist.barrier()
            network, optimizer = alone, optimizers[alone]
            first = statistics.median(timed(options.steps)) if rank == 0 else None
            if options.profile and rank == 0 and turn == (options.rounds + 1) // 2:
                profiled()
            dist.barrier()
            network, optimizer = together, optimizers[together]
            second = statistics.median(timed(options.steps))
            if turn > 0:
                times.append(second)
                if rank == 0:
                    one.append(first)
                    ratios.append(second / first)
    else:
        times = timed(options.steps)
        if options.profile:
            profiled()
    step_s = torch.tensor(statistics.median(times), dtype=torch.double)
    if ranks > 1:
        dist.all_reduce(step_s, dist.ReduceOp.MAX)
        dist.barrier()
    if rank == 0:
        found = {"network": options.network, "ranks": ranks, "batch": options.batch, "steps": len(times), "step_s": step_s.item()}
        if options.rounds > 0:
            found |= {"alone_s": statistics.median(one), "ratio": statistics.median(ratios), "ratios": [round(each, 3) for each in ratios]}
        print(json.dumps(found), flush=True)
    if ranks > 1:
        os._exit(0)  # gloo's threads may spin for ever where one rank is gone before the other takes leave


def spawn(options, argv):
    """So many processes of this host; the first one's output is ours."""
    import socket
    import subprocess
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = dict(os.environ, WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    processes = [subprocess.Popen([sys.executable, __file__, *argv], env=dict(environment, RANK=str(rank)))
                 for rank in range(options.ranks)]
    # Where one ends badly the others would wait for it.
    while True:
        codes = [process.poll() for process in processes]
        if all(code is not None for code in codes):
            return max(map(abs, codes))
        if any(codes):
            for process in processes:
                process.kill()
        time.sleep(0.05)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=0, help="so many times --steps steps of rank 0 alone and then of all")
    parser.add_argument("--set-to-none", action="store_true", help="gradients are freed, not set to zero, before a step")
    parser.add_argument("--profile", help="a trace; RANK in its name is the rank")
    parser.add_argument("--profile-steps", type=int, default=5)
    parser.add_argument("--export", help="write the network as .onnx and do nothing else")
    options = parser.parse_args()
    if options.export:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from export_onnx import export
        make, samples = NETWORKS[options.network]
        export(make(), (samples(2)[0],), options.export)
        return 0
    if options.rounds > 0 and max(options.ranks, int(os.environ.get("WORLD_SIZE", "1"))) < 2:
        parser.error("--rounds needs --ranks 2 or more")
    if options.ranks > 1 and "WORLD_SIZE" not in os.environ:
        return spawn(options, sys.argv[1:])
    train(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
