#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills ranks of `rehearse run`, under mpirun, at random moments from start to end, and lets the job resume.

kills.py BINARY [KILLS] [SEED]      KILLS: of each plan (25)

After each kill the job must end by itself within 10 s, with a message and an exit code that is not 0, and none of its
ranks may be left. (Open MPI's mpirun itself seldom does not notice that all ranks have ended; that is told, and is no
failure of ours.) The job that was killed again and again ends with the checkpoint, byte by byte, of one that was left
in peace; where ranks do not wait for each other (several workers of servers), with as many steps.
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 10
STEPS = 20
PLANS = [  # ranks, plan, whether two runs of it give the same numbers
    (2, "data", True),
    (2, "pipe=2:microbatches=2", True),
    (4, "data=2:zero=2,pipe=2:microbatches=2", True),
    (2, "data=2:local=2", True),
    (2, "data=2:compress=1bit", True),
    (2, "data=2:learners=2", True),
    (2, "server=1,data=1", True),
    (3, "server=1,data=2", False),
]


class Job:
    """A training with a checkpoint a step; `runs` makes of its words those that start its ranks."""

    def __init__(self, binary, plan, folder, steps, runs):
        self.binary, self.checkpoints, self.steps = os.path.abspath(binary), pathlib.Path(folder) / "checkpoints", steps
        self.words = runs([self.binary, "run", "--model", "lenet5", "--batch", "4", "--plan", plan, "--steps", str(steps),
                           "--checkpoint", str(self.checkpoints)])
        self.process = None

    def start(self):
        resume = ["--resume"] if self.newest() else []
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.process = subprocess.Popen(self.words + resume, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)

    def end_well(self, when):
        """Waits for it; its exit code must be 0."""
        _, said = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit(f"{when}: exit {self.process.returncode}:\n{said.decode()}")

    def newest(self):
        return max(self.checkpoints.glob("step-*.h5"), default=None)

    def done(self):
        newest = self.newest()
        return newest is not None and newest.name == f"step-{self.steps:06}.h5"

    def ranks(self):
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0] == self.binary.encode() and str(self.checkpoints).encode() in words:
                found.append(int(folder.name))
        return found


def in_peace(plan, steps, runs, binary):
    """The last checkpoint of a job that nobody disturbed, and how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(binary, plan, folder, steps, runs)
        begin = time.monotonic()
        job.start()
        job.end_well(f"{plan}, in peace")
        return job.newest().read_bytes(), time.monotonic() - begin


def under_way(job, after):
    """Starts it; its ranks so many seconds later, none where it has ended by then."""
    job.start()
    time.sleep(after)
    ranks = job.ranks()
    if not ranks:
        job.process.communicate()
    return ranks


def ended(job):
    """How long a job goes on of which a rank was just killed."""
    begin = time.monotonic()
    try:
        _, said = job.process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        job.process.kill()
        _, said = job.process.communicate()
        if job.ranks():
            sys.exit(f"{job.words}: ranks run on a minute after one of them was killed: {job.ranks()}")
        print(f"{job.words}: all ranks have ended, and mpirun waits on", flush=True)
        return 0
    took = time.monotonic() - begin
    if took > LIMIT_S:
        sys.exit(f"{job.words}: ended {took:.1f} s after a rank was killed")
    if job.process.returncode != 0 and not said.strip():
        sys.exit(f"{job.words}: exit {job.process.returncode} without a word")
    if job.process.returncode == 0 and not job.done():
        sys.exit(f"{job.words}: exit 0, but not all steps are done")
    for _ in range(20):
        if not job.ranks():
            return took
        time.sleep(0.1)
    sys.exit(f"{job.words}: ranks are left: {job.ranks()}")


def check_end(job, right):
    """Resumes it where it has not done all steps; it must end with these bytes, where they are given."""
    if not job.done():
        job.start()
        job.end_well(f"{job.words}, on resuming")
    if not job.done() or (right and job.newest().read_bytes() != right):
        sys.exit(f"{job.words}: it does not end with the checkpoint of a job that was left in peace")


def check(binary, ranks, plan, same, kills, draw):
    def runs(words):
        return ["mpirun", "--oversubscribe", "-n", str(ranks), *words]

    right, seconds = in_peace(plan, STEPS, runs, binary)
    longest, killed = 0, 0
    while killed < kills:
        with tempfile.TemporaryDirectory() as folder:
            job = Job(binary, plan, folder, STEPS, runs)
            while killed < kills and not job.done():
                if found := under_way(job, draw.uniform(0.1, 0.95) * seconds):
                    os.kill(draw.choice(found), signal.SIGKILL)
                    longest = max(longest, ended(job))
                    killed += 1
            check_end(job, right if same else None)
    print(f"{plan} on {ranks} ranks: {killed} kills, ended at most {longest:.1f} s after one, resumed "
          f"{'to the same bytes' if same else 'to the last step'}", flush=True)


def main():
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 25
    draw = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 11)
    for ranks, plan, same in PLANS:
        check(sys.argv[1], ranks, plan, same, kills, draw)


if __name__ == "__main__":
    main()
