#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds networks of the zoo that are not torchvision's to the same layers written in PyTorch.

Parameters must be equal. Those without dropout are also trained one step by `rehearse run` on made-up samples, at a
learning rate that changes no weight: the loss must agree to 1e-5 and every gradient to 1e-4 of its norm.

  zoo_to_torch.py REHEARSE [--only NAME,...] [--ranks 2]

Exits with 77, which ctest calls skipped, where PyTorch or h5py is absent, and with 1 when something differs.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BATCH = 4


def zoo():
    import torch_zoo
    return torch_zoo.NETWORKS


def run(options, name, folder):
    saved, gradients = folder / "weights.h5", folder / "gradients.h5"
    command = [options.rehearse, "run", "--model", name, "--data", str(folder / "data.h5"), "--order", "given", "--batch",
               str(BATCH // options.ranks), "--steps", "1", "--optimizer", "sgd", "--learning-rate", "1e-30", "--momentum", "0",
               "--format", "json", "-q", "--save", str(saved), "--save-gradients", str(gradients)]
    if options.ranks > 1:
        command = ["mpirun", "--oversubscribe", "--allow-run-as-root", "-n", str(options.ranks)] + command
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)["steps"][0]["loss"], tensors(saved), tensors(gradients)


def tensors(path):
    import h5py
    with h5py.File(path) as file:
        return {f"{layer}/{tensor}": values[()] for layer, group in file.items() for tensor, values in group.items()
                if tensor != "statistics"}


def gradients_of(module, network, weights, inputs, labels):
    """What PyTorch makes of the same weights: the loss, and gradients by our names."""
    import torch
    module.double()
    found = network.tensors(module)
    if set(found) != set(weights):
        raise RuntimeError(f"tensors differ: {sorted(set(found) ^ set(weights))}")
    with torch.no_grad():
        for name, tensor in found.items():
            tensor.load(torch.from_numpy(weights[name]).double().reshape(-1))
    loss = network.loss(module, inputs, labels)
    loss.backward()
    return loss.item(), {name: tensor.gradient().numpy() for name, tensor in found.items()}


def check(options, name, network):
    import numpy as np
    module = network.module()
    theirs = sum(parameter.numel() for parameter in module.parameters())
    ours = json.loads(subprocess.run([options.rehearse, "models", name, "--format", "json"], capture_output=True, text=True,
                                     check=True, timeout=300).stdout)["parameters"]
    if ours != theirs:
        return f"{ours} parameters for {theirs}"
    if network.loss is None:
        return f"ok, {ours} parameters"
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        inputs, labels = network.samples(BATCH, folder / "data.h5")
        loss, weights, gradients = run(options, name, folder)
        right, rights = gradients_of(module, network, weights, inputs, labels)
    worst = 0
    for tensor, values in gradients.items():
        expected = rights[tensor]
        worst = max(worst, np.linalg.norm(values.reshape(-1) - expected) / max(np.linalg.norm(expected), 1e-6))
    far = abs(loss - right) / abs(right)
    verdict = f"loss {far:.1e}, gradients {worst:.1e}"
    return f"ok, {ours} parameters, {verdict}" if far < 1e-5 and worst < 1e-4 else verdict


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rehearse")
    parser.add_argument("--only", default="")
    parser.add_argument("--ranks", type=int, default=1)
    options = parser.parse_args()
    try:
        import h5py  # noqa: F401
        import torch
        networks = zoo()
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-torch, python3-h5py)")
        return 77
    torch.set_num_threads(1)
    wrong = 0
    for name, network in networks.items():
        if (options.only and name not in options.only.split(",")) or (options.ranks > 1 and network.loss is None):
            continue
        try:
            answer = check(options, name, network)
        except RuntimeError as error:
            answer = str(error)
        print(f"{name}: {answer}")
        wrong += not answer.startswith("ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
