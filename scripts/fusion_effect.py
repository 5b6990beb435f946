#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What fusion is worth on this host: predicted and measured, several --fuse settings in turn.

Training runs of the settings alternate, so that whatever else the machine does meets them alike; a run's first step is
left out. Prints for each setting the predicted step (calibrated first), the median and the least measured step, and
how many times faster than the first setting it is.
  scripts/fusion_effect.py build/release/cli/rehearse --model resnet32 --batch 32 --fuse off,on --rounds 10
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile


def result(command, home):
    done = subprocess.run(command + ["--format", "json"], check=True, capture_output=True, text=True,
                          env={**os.environ, "REHEARSE_HOME": home})
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rehearse", help="the program")
    parser.add_argument("--model", default="resnet32")
    parser.add_argument("--batch", default="32")
    parser.add_argument("--fuse", default="off,on", help="settings; several patterns of one are joined by +")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=8, help="of a training run")
    parser.add_argument("--budget", default="20", help="seconds of each calibration")
    given = parser.parse_args()
    settings = [setting.replace("+", ",") for setting in given.fuse.split(",")]
    predicted, measured = {}, {setting: [] for setting in settings}
    with tempfile.TemporaryDirectory() as home:
        def run(command, setting, *more):
            return result([given.rehearse, command, "--model", given.model, "--batch", given.batch, "--fuse", setting,
                           *more], home)
        for setting in settings:
            run("calibrate", setting, "--quick", "--budget", given.budget)
            predicted[setting] = run("predict", setting, "--machine", "this-host")["points"][0]["step_s"]
        for _ in range(given.rounds):
            for setting in settings:
                steps = run("run", setting, "--steps", str(given.steps))["steps"][1:]
                measured[setting] += [step["seconds"] for step in steps]
    first = settings[0]
    print("fuse                  predicted    median     least    faster: predicted    median     least")
    for setting in settings:
        times = [predicted[setting], statistics.median(measured[setting]), min(measured[setting])]
        base = [predicted[first], statistics.median(measured[first]), min(measured[first])]
        text = "".join(f"{1e3 * time:8.2f} ms"[:11].rjust(10) for time in times)
        print(f"{setting:20} {text}              " + "".join(f"{b / t:10.3f}" for b, t in zip(base, times)))


if __name__ == "__main__":
    main()
