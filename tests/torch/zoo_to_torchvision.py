#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the zoo to torchvision: parameters exactly, multiply-adds as PyTorch dispatches them within 0.1 %.

  zoo_to_torchvision.py REHEARSE [--only NAME,...] [--quick]

--quick leaves out what takes more than a few seconds. Exits with 77, which ctest calls skipped, where PyTorch is absent,
and with 1 when a count differs.
"""
import argparse
import json
import pathlib
import subprocess
import sys

NETWORKS = {f"efficientnet-b{i}": (f"efficientnet_b{i}", size)
            for i, size in enumerate((224, 240, 288, 300, 380, 456, 528, 600))}
NETWORKS |= {name: (name.replace("-", "_").replace(".", "_"), 224) for name in (
    "alexnet", "vgg16", "vgg19", "resnet50", "resnet101", "resnet152", "densenet121", "mobilenet-v2",
    "mobilenet-v3-large", "mobilenet-v3-small", "resnext50-32x4d", "resnext101-32x8d", "resnext101-64x4d",
    "regnet-x-400mf", "regnet-x-800mf", "regnet-x-1.6gf", "regnet-x-3.2gf", "regnet-x-8gf", "regnet-x-16gf",
    "regnet-x-32gf", "regnet-y-400mf", "regnet-y-800mf", "regnet-y-1.6gf", "regnet-y-3.2gf", "regnet-y-8gf",
    "regnet-y-16gf", "regnet-y-32gf", "convnext-tiny", "convnext-small", "convnext-base", "convnext-large", "vit-b-16",
    "vit-l-16", "vit-h-14", "swin-t", "swin-s", "swin-b")}
SLOW = {"efficientnet-b5", "efficientnet-b6", "efficientnet-b7", "regnet-x-16gf", "regnet-x-32gf", "regnet-y-16gf",
        "regnet-y-32gf", "convnext-base", "convnext-large", "vit-l-16", "vit-h-14", "resnext101-32x8d",
        "resnext101-64x4d", "vgg19", "resnet152", "swin-b"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rehearse")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    try:
        import torch
        import torchvision
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
        from export_extras import counts
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-torch, python3-torchvision, python3-onnx)")
        return 77
    wrong = held = 0
    for name, (theirs, size) in NETWORKS.items():
        if (options.only and name not in options.only.split(",")) or (options.quick and name in SLOW):
            continue
        if not hasattr(torchvision.models, theirs):  # of a later torchvision
            print(f"{name}: torchvision {torchvision.__version__} has no {theirs}")
            continue
        # In training mode, two samples: an evaluation's attention is one operator that hides its products.
        module = getattr(torchvision.models, theirs)(weights=None).train()
        work = counts(module, (torch.zeros(2, 3, size, size),))["multiply_adds"]
        count = sum(each.numel() for each in module.parameters())
        run = subprocess.run([options.rehearse, "models", name, "--format", "json"], capture_output=True, text=True,
                             timeout=300)
        ours = json.loads(run.stdout) if run.returncode == 0 else {"parameters": 0, "multiply_adds": 0}
        held += 1
        if ours["parameters"] == count and abs(ours["multiply_adds"] - work) <= 1e-3 * work:
            continue
        wrong += 1
        print(f"{name}: {ours['parameters']} parameters for {count}, {ours['multiply_adds']:.0f} multiply-adds for "
              f"{work:.0f} {run.stderr.strip()[-200:]}")
    print(f"{held - wrong} of {held} networks have torchvision's parameters and multiply-adds")
    return 1 if wrong or not held else 0


if __name__ == "__main__":
    sys.exit(main())
