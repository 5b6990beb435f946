#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a worker of `rehearse run` with a parameter server, by SIGKILL, and stops another one: training goes on.

survival.py BINARY MPIRUN...      good when the others make all of their steps, and the job says who died; 77 without
                                  Open MPI 4, whose --enable-recovery lets a job outlive its ranks
"""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time

SECONDS = 10  # what the job would take if nobody died: long enough to be hit on the fastest machine
LEAST = 300   # steps in which something is learnt


def ranks_of(job):
    """The processes of the program under this mpirun, by rank."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) != job.pid:
                continue
            environment = dict(word.split("=", 1) for word in (folder / "environ").read_text().split("\0") if "=" in word)
        except (OSError, ValueError):
            continue
        if "OMPI_COMM_WORLD_RANK" in environment:
            found[int(environment["OMPI_COMM_WORLD_RANK"])] = int(folder.name)
    return found


def train(words, steps, workers=0, send=None):
    """The document of a job whose ranks are sent signals once each has begun: {rank: signal}; or of one that is left alone."""
    send = send or {}
    job = subprocess.Popen([*words, "--steps", str(steps)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if send:
        while len(ranks := ranks_of(job)) < workers + 1 and job.poll() is None:
            time.sleep(0.02)
        time.sleep(1.5)
    for rank, number in send.items():
        os.kill(ranks[rank], number)
    said, why = job.communicate(timeout=120)
    for rank, number in send.items():
        if number == signal.SIGSTOP:
            try:
                os.kill(ranks[rank], signal.SIGKILL)
            except ProcessLookupError:
                pass
    if job.returncode != 0:
        sys.exit(f"{steps} steps, {send}: exit {job.returncode}: {why}")
    return json.loads(said)


def check(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found}, not {wanted}")


def main():
    binary, mpirun = sys.argv[1], sys.argv[2:]
    version = subprocess.run([mpirun[0], "--version"], capture_output=True, text=True, check=False).stdout
    if "(Open MPI) 4." not in version and "(OpenRTE) 4." not in version:
        print(f"skipped: {version.strip()} has no --enable-recovery of Open MPI 4")
        sys.exit(77)
    run = [binary, "run", "--model", "lenet5", "--batch", "32", "--momentum", "0", "--patience", "2s", "--format", "json"]
    words = [*mpirun, "--enable-recovery", "-n", "4", *run, "--plan", "server=1,data=3"]
    pace = statistics.median(step["seconds"] for step in train(words, 30)["steps"])
    steps = max(LEAST, round(SECONDS / pace))
    killed = train(words, steps, 3, {2: signal.SIGKILL})
    check("who died", killed["lost"], [2])
    check("who was cut", killed["cut"], [])
    check("steps", len(killed["steps"]), steps)
    updates = sum(killed["staleness"])
    each = updates / steps  # buckets times workers: those of two all the time, of the third for a part of it
    if not 2 < each < 3 * 20 or updates <= 2 * steps:
        sys.exit(f"{updates} updates in {steps} steps")
    first = killed["steps"][0]["loss"]
    last = sum(step["loss"] for step in killed["steps"][-20:]) / 20
    if not last < 0.8 * first:
        sys.exit(f"nothing is learnt: loss {first} to {last}")
    print(f"one of three workers killed: {updates} updates, loss {first:.3f} to {last:.3f}")


if __name__ == "__main__":
    main()
