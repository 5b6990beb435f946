#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles that PyTorch records here, on one process and on two over gloo, become prices: nearly all of a step has a
layer, and what is predicted from the prices of one process is the step that was profiled.

profiles.py REHEARSE: exits with 77 where there is no PyTorch, with 1 where something is wrong.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TRAIN = ROOT / "scripts" / "pytorch_train.py"
BATCH = "4"


def ask(*command):
    return json.loads(subprocess.run([*map(str, command), "--format", "json", "-q"], check=True, capture_output=True, text=True).stdout)


def train(*arguments):
    subprocess.run([sys.executable, TRAIN, *map(str, arguments), "--batch", BATCH, "--steps", "1", "--warm-up", "1"], check=True,
                   capture_output=True)


def near(what, value, expected, tolerance):
    if abs(value / expected - 1) > tolerance:
        sys.exit(f"{what}: {value}, expected {expected} within {tolerance:.0%}")


def check(rehearse, folder, network, ranks):
    model, prices = folder / f"{network}.onnx", folder / f"{network}{ranks}.toml"
    if not model.exists():
        train(network, "--export", model)
    train(network, "--ranks", ranks, "--profile", folder / f"{network}{ranks}-RANK.json.gz")
    traces = [folder / f"{network}{ranks}-{rank}.json.gz" for rank in range(ranks)]
    found = ask(rehearse, "calibrate", "--trace", *traces, "--model", model, "--batch", BATCH, "--machine", "cori-haswell",
                "--machine-out", prices)
    shares = {row["what"]: row for row in found["steps"]}
    if shares["without a layer"]["share"] > 0.05:
        sys.exit(f"{network}: {shares['without a layer']['share']:.1%} of the step has no layer: {found['unmatched']}")
    if len(found["missing"]) > 1:  # the sum of words and places is part of the embedding
        sys.exit(f"{network}: no operator for {found['missing']}")
    if ranks > 1 and not (found["messages"] and all(row["bytes"] > 0 for row in found["messages"])):
        sys.exit(f"{network}: all-reduces without bytes: {found['messages']}")
    if ranks == 1:
        point = ask(rehearse, "predict", "--model", model, "--batch", BATCH, "--machine", prices, "--devices", "1")["points"][0]
        near(f"{network}, predicted from its prices", point["step_s"], shares["step"]["seconds_s"], 0.02)
    print(f"{network}, {ranks} ranks: {shares['layers']['share']:.1%} of {shares['step']['seconds_s'] * 1e3:.1f} ms in layers")


def main():
    try:
        import onnx  # noqa: F401
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"skipped: {error}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        for network, ranks in (("resnet", 1), ("bert", 1), ("dense", 1), ("dense", 2)):
            check(sys.argv[1], pathlib.Path(name), network, ranks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
