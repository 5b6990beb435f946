#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds memory to be flat: predictions in one process, a training of many steps with checkpoints, plans that are simulated
one after the other, and a window in use.

soak.py BUILD [PART...]             PART: predictions, training, plans, window; all where none is named
  --predictions N                   in one process (default 10000)
  --steps N                         of the training, with a hundred checkpoints (default 100000)
  --plans N                         random plans, each simulated in both modes (default 100000)
  --minutes M                       of the window's tests, over and over in one process without a screen (default 30)

Each part says how many it did, in which time, and what memory it held after a tenth of the time and at its end; exit
code 1 where one failed or grew by more than 5 %.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

GROWTH = 1.05  # of the resident set, from a tenth of the way to its end
PARTS = ("predictions", "training", "plans", "window")


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


def window(asked):
    """All tests of the window but those that wait: files opened, screens gone through, editors, themes, pictures."""
    return watched("the window", [asked.build / "tests/gui/test_gui_window", "--gtest_repeat=-1", "--gtest_brief=1",
                                  "--gtest_throw_on_failure", "--gtest_filter=-*NeverWaits*:*ALargeTimeline*"],
                   {"QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": "1"}, asked.minutes * 60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART")
    for name, default in (("predictions", 10_000), ("steps", 100_000), ("plans", 100_000), ("minutes", 30)):
        parser.add_argument(f"--{name}", type=float if name == "minutes" else int, default=default)
    asked = parser.parse_args()
    asked.build = asked.build.resolve()
    if unknown := [part for part in asked.parts if part not in PARTS]:
        parser.error(f"{unknown[0]}: no part; there are {', '.join(PARTS)}")
    results = [globals()[part](asked) for part in PARTS if not asked.parts or part in asked.parts]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
