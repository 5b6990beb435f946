#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a job again and again, each rank in turn, at moments all over a step and its checkpoint, and lets it resume.

check_kills.py PLAN KILLS JOB...    JOB: mpirun ... checkpoint_job
Good when no resumed job begins more than one step behind what had been done, and the end is bit-equal to that of a job
that was left in peace.
"""
import random
import subprocess
import sys
import tempfile

STEPS = 12


def run(job, folder, plan, rank, microseconds):
    """What the job said."""
    said = subprocess.run([*job, folder, plan, str(STEPS), str(rank), str(microseconds)], capture_output=True,
                          text=True, timeout=100, check=False)
    words = [line.split() for line in said.stdout.splitlines()]
    if any(w and w[0] == "skipped:" for w in words):
        print(said.stdout)
        sys.exit(77)
    begins = next((int(w[1]) for w in words if w[0] == "begins"), None)
    done = [int(w[1]) for w in words if w[0] == "done"]
    state = next((w[1] for w in words if w[0] == "state"), None)
    if rank < 0 and state is None:
        sys.exit(f"a job that nobody killed failed:\n{said.stdout}\n{said.stderr}")
    took = next((float(w[1]) for w in words if w[0] == "took"), None)
    return begins, done, state, took


def main():
    plan, kills, job = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    ranks = int(job[job.index("-n") + 1])
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as peace, tempfile.TemporaryDirectory() as war:
        _, _, right, seconds = run(job, peace, plan, -1, 0)
        reached = killed = 0
        for i in range(kills):
            begins, done, state, _ = run(job, war, plan, i % ranks, int(draw.uniform(0.1, 0.8) * seconds * 1e6))
            if begins is not None and begins < reached:
                sys.exit(f"kill {i}: begins at step {begins}, but {reached} had been done")
            reached = max([reached, *done])
            killed += state is None
            if state is not None:
                break
        if killed == 0:
            sys.exit("no job was killed in time: nothing has been tested")
        begins, _, state, _ = run(job, war, plan, -1, 0) if state is None else (None, None, state, None)
        print(f"{killed} kills, {reached} steps done before the last of them, {begins} at the last resumption")
        if state != right:
            sys.exit(f"the end is {state}, that of a job left in peace {right}")


if __name__ == "__main__":
    main()
