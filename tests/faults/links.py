#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the link between two hosts of scripts/netlab.sh down while `rehearse run` trains on them, and brings it up again.

links.py BINARY NETLAB [CUTS] [SEED]      CUTS: of each plan (6); exit code 77 where there can be no such hosts

A link that is down for 0.2 to 3 s costs time and nothing else: the job ends with the checkpoint, byte by byte, of one
whose link stayed up. Every third time a rank is killed while the link is down: then the job ends with a message within
10 s of the link's return, and resumes to the same bytes.
"""
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import kills

STEPS = 150
PLANS = ["data", "pipe=2:microbatches=2", "data=2:zero=2", "data=2:local=2", "data=2:learners=2", "server=1,data=1"]


class Lab:
    """Two hosts, gone at the end."""

    def __init__(self, netlab):
        self.netlab, self.name = netlab, f"k{os.getpid()}"

    def __enter__(self):
        made = subprocess.run([self.netlab, "up", "2", "--name", self.name], stderr=subprocess.PIPE, text=True, check=False)
        if made.returncode != 0:
            print(f"skipped: {made.stderr.strip()}")
            sys.exit(77 if made.returncode == 3 else 1)
        return self

    def __exit__(self, *_):
        subprocess.run([self.netlab, "down", "--name", self.name], check=True)

    def runs(self, words):
        return [self.netlab, "run", "2", "--name", self.name, *words]

    def set_link(self, state):
        subprocess.run(["ip", "-n", f"{self.name}-switch", "link", "set", "port1", state], check=True)

    @contextlib.contextmanager
    def cut(self, seconds):
        self.set_link("down")
        try:
            yield
            time.sleep(seconds)
        finally:
            self.set_link("up")


def check(lab, binary, plan, cuts, draw):
    right, seconds = kills.in_peace(plan, STEPS, lab.runs, binary)
    cut = killed = 0
    while cut < cuts:
        with tempfile.TemporaryDirectory() as folder:
            job = kills.Job(binary, plan, folder, STEPS, lab.runs)
            ranks = kills.under_way(job, draw.uniform(0.1, 0.95) * seconds)
            if not ranks:
                continue
            kill, down = cut % 3 == 2, draw.uniform(0.2, 3)
            with lab.cut(down):
                if kill:
                    os.kill(draw.choice(ranks), signal.SIGKILL)
            if kill:
                kills.ended(job)
            else:
                job.end_well(f"{job.words}, {down:.1f} s without a link")
            kills.check_end(job, right)
            cut += 1
            killed += kill
    print(f"{plan}: the link went down {cut} times, {killed} of them with a rank killed meanwhile; each job ended with the "
          "same bytes", flush=True)


def main():
    cuts = int(sys.argv[3]) if len(sys.argv) > 3 else 6
    draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 11)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # a test that takes too long leaves no hosts either
    with Lab(pathlib.Path(sys.argv[2]).resolve()) as lab:
        for plan in PLANS:
            check(lab, sys.argv[1], plan, cuts, draw)


if __name__ == "__main__":
    main()
