#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes calls of MPI fail in jobs under mpirun, one at a time on one rank, and looks at how the jobs end.

mpi_faults.py BINARY FAULTS.so [CALLS] [SEED]      FAULTS.so is tests/run/mpi_faults.cpp; CALLS: of each job and rank (10)

Each job runs once to count the calls of each rank, then once a call. It must end within 10 s of what it takes in peace,
with exit code 3 and a message that names the call of MPI and is no confession of a bug (5); what was there before
stays, or is whole, and no file is left that the next run does not take away.
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

LIMIT_S = 10
MESSAGE = re.compile(r"^rehearse: (rank \d+: )?MPI_[A-Z]\w+: ", re.MULTILINE)
BEFORE = "what was there before\n"
JOBS = [
    (2, "run --model lenet5 --batch 4 --plan data --steps 4 --checkpoint C --save w.h5 --force"),
    (2, "run --model lenet5 --batch 4 --plan pipe=2:microbatches=2 --steps 4 --checkpoint C --save w.h5 --force"),
    (3, "run --model lenet5 --batch 4 --plan server=1,data=2 --steps 4 --checkpoint C"),
    (2, "run --model lenet5 --batch 4 --plan data=2:learners=2 --steps 4 --checkpoint C"),
    (2, "search --model alexnet --machine summit --devices 4 --batch 8 --top 1 --store s.sqlite"),
]


def run(binary, ranks, words, folder, environment):
    """Exit code, stderr and seconds of a job; no code where all its ranks have ended, and mpirun has not."""
    (folder / "w.h5").write_text(BEFORE, encoding="utf-8")
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "REHEARSE_HOME": str(folder), **environment}
    begin = time.monotonic()
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), binary, *words.split()]
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        _, said = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        alone = not ranks_of(process.pid)
        process.kill()
        process.communicate()
        if alone:  # Open MPI's own: it seldom does not notice that all its ranks have ended
            return None, "", 0
        raise
    return process.returncode, said.decode(errors="replace"), time.monotonic() - begin


def ranks_of(mpirun):
    """Ranks that run. Those that have ended, and that mpirun has not waited for, do not."""
    states = subprocess.run(["ps", "--ppid", str(mpirun), "-o", "stat="], capture_output=True, text=True, check=False)
    return [state for state in states.stdout.split() if not state.startswith("Z")]


def unfinished(folder):
    return [path.name for path in folder.rglob("*") if path.is_file() and path.name != "count"
            and path.suffix not in (".h5", ".sqlite", ".part")]  # a part is what the next save takes away


def check(binary, faults, ranks, words, calls, draw):
    failures = []
    for rank in range(min(ranks, 2)):
        environment = {"LD_PRELOAD": faults, "REHEARSE_FAULT_RANK": str(rank), "REHEARSE_FAULT_AT": "0"}
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            code, said, seconds = run(binary, ranks, words, folder, {**environment, "REHEARSE_FAULT_COUNT": f"{name}/count"})
            if code != 0:
                sys.exit(f"{words} fails in peace, exit {code}:\n{said}")
            count = int((folder / "count").read_text(encoding="ascii"))
            usual = unfinished(folder)
            whole = (folder / "w.h5").read_bytes()
        ended = 0
        for at in sorted(draw.sample(range(1, count + 1), min(count, calls))):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                try:
                    code, said, took = run(binary, ranks, words, folder, {**environment, "REHEARSE_FAULT_AT": str(at)})
                except subprocess.TimeoutExpired:
                    failures.append(f"{words}: rank {rank}, call {at} of {count}: still running")
                    continue
                if code is None:
                    print(f"{words}: rank {rank}, call {at}: all ranks have ended, and mpirun waits on", flush=True)
                    continue
                if code == 0:  # fewer calls than when they were counted
                    continue
                ended += 1
                wrong = []
                if code != 3:
                    wrong.append(f"exit {code}")
                if not MESSAGE.search(said):
                    wrong.append("no message")
                if took > seconds + LIMIT_S:
                    wrong.append(f"{took:.1f} s where {seconds:.1f} s do in peace")
                if (folder / "w.h5").read_bytes() not in (whole, BEFORE.encode()):
                    wrong.append("half a file")
                if set(unfinished(folder)) - set(usual):
                    wrong.append(f"left: {unfinished(folder)}")
                if wrong:
                    failures.append(f"{words}: rank {rank}, call {at} of {count}: {', '.join(wrong)}: {said[:300]}")
        print(f"{words}: rank {rank}: {ended} of {count} calls failed the job", flush=True)
    return failures


def main():
    calls = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    draw = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 13)
    failures = []
    for ranks, words in JOBS:
        failures += check(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), ranks, words, calls, draw)
    print("\n".join(failures) or "no findings")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
