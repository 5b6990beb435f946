#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds memory to be flat: predictions in one process, a training of many steps with checkpoints, plans that are simulated
one after the other, a search of millions of plans, and a window in use.

soak.py BUILD [PART...]             PART: predictions, training, plans, search, window; all where none is named
  --predictions N                   in one process (default 10000)
  --steps N                         of the training, with a hundred checkpoints (default 100000)
  --plans N                         random plans, each simulated in both modes (default 100000)
  --devices N                       of the search: all even numbers up to it (default 2240: some ten million plans)
  --minutes M                       of the window's tests, over and over in one process without a screen (default 30)

Each part says how many it did, in which time, and what memory it held after a tenth of the time and at its end; exit
code 1 where one failed or grew by more than 5 %. The search lists what it may simulate: it fails above 300 bytes a plan and
the 4 GB that schedules and layers may take.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GROWTH = 1.05  # of the resident set, from a tenth of the way to its end
A_SEARCH, A_PLAN = 4e9, 300  # bytes that it may hold, and for each plan beside it
PARTS = ("predictions", "training", "plans", "search", "window")


def resident(process="self"):
    """Bytes of memory that a process holds; None where it has ended."""
    try:
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS")), None)


def held(name, seconds, begin, end):
    print(f"{name} in {seconds:.0f} s: {begin / 1e6:.1f} MB after a tenth, {end / 1e6:.1f} MB at the end", flush=True)
    return end <= GROWTH * begin


def watched(name, command, environment, seconds=None):
    """Of a process the most that it held just after a tenth of its time, and at its end; ended after `seconds`."""
    sizes, began = [], time.monotonic()
    with (tempfile.TemporaryFile() as told,
          subprocess.Popen(command, stdout=told, env={**os.environ, **environment}) as job):
        while job.poll() is None and (seconds is None or time.monotonic() - began < seconds):
            size = resident(job.pid)
            if size:
                sizes.append(size)
            try:
                job.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                pass
        over = job.poll() is None  # its time is, and nothing has ended it before
        if over:
            job.terminate()
        job.wait()
        told.seek(max(0, told.tell() - 2000))
        last = told.read().decode(errors="replace")
    if len(sizes) < 50:
        print(f"{name}: exit {job.returncode}, looked at {len(sizes)} times; it said last:\n{last}")
        return False
    tenth = len(sizes) // 10
    stays = held(name, time.monotonic() - began, max(sizes[tenth:2 * tenth]), max(sizes[-tenth:]))
    if over or job.returncode == 0:
        return stays
    print(f"{name}: exit {job.returncode}; it said last:\n{last}")
    return False


def predictions(asked):
    sys.path.insert(0, str(asked.build / "python"))
    import rehearse  # pylint: disable=import-outside-toplevel

    models, plans = ["alexnet", "resnet50", "bert-base"], ["data", "data:zero=1", "data=2,pipe=2:microbatches=4"]
    begin, began = 0, time.monotonic()
    for i in range(asked.predictions):
        rehearse.predict(models[i % 3], "summit", devices=[4], plan=plans[i // 3 % 3], batch=8 + 4 * (i % 5))
        if i == asked.predictions // 10:
            begin = resident()
    return held(f"{asked.predictions} predictions", time.monotonic() - began, begin, resident())


def training(asked):
    with tempfile.TemporaryDirectory() as folder:
        return watched(f"a training of {asked.steps} steps",
                       [asked.build / "cli/rehearse", "run", "--model", "lenet5", "--batch", "2", "--steps", str(asked.steps),
                        "--checkpoint", folder, "--checkpoint-every", str(max(1, asked.steps // 100)), "-q"],
                       {"OMP_NUM_THREADS": "1"})


def plans(asked):
    return watched(f"{asked.plans} plans", [asked.build / "tests/sim/test_sim_random_plans"], {"REHEARSE_PLANS": str(asked.plans)})


def search(asked):
    """By cost no mesh is cut off by its bound; 8 TB a device, as nothing is too large."""
    began = time.monotonic()
    devices = ",".join(str(count) for count in range(16, asked.devices + 1, 2))
    command = [asked.build / "cli/rehearse", "search", "--model", "gpt3-175b", "--machine", "selene", "--devices", devices,
               "--global-batch", "80640", "--precision", "mixed", "--objective", "cost", "--memory-limit", "8TB", "--max-pipe",
               "192", "--max-chunks", "64", "--max-tensor", "16", "--top", "1", "--format", "json", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as job:
        told = job.stdout.read()
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
    if job.returncode != 0:
        print(f"the search: exit {job.returncode}")
        return False
    plans_seen, most = json.loads(told)["counts"]["screened"], used.ru_maxrss * 1024
    print(f"a search of {plans_seen} plans in {time.monotonic() - began:.0f} s: {most / 1e6:.1f} MB at most, "
          f"{most / plans_seen:.0f} B a plan", flush=True)
    return most <= A_SEARCH + A_PLAN * plans_seen


def window(asked):
    """All tests of the window but those that wait: files opened, screens gone through, editors, themes, pictures."""
    return watched("the window", [asked.build / "tests/gui/test_gui_window", "--gtest_repeat=-1", "--gtest_brief=1",
                                  "--gtest_throw_on_failure", "--gtest_filter=-*NeverWaits*:*ALargeTimeline*"],
                   {"QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": "1"}, asked.minutes * 60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART")
    for name, default in (("predictions", 10_000), ("steps", 100_000), ("plans", 100_000), ("devices", 2240),
                          ("minutes", 30)):
        parser.add_argument(f"--{name}", type=float if name == "minutes" else int, default=default)
    asked = parser.parse_args()
    asked.build = asked.build.resolve()
    if unknown := [part for part in asked.parts if part not in PARTS]:
        parser.error(f"{unknown[0]}: no part; there are {', '.join(PARTS)}")
    results = [globals()[part](asked) for part in PARTS if not asked.parts or part in asked.parts]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
