#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the import to PyTorch: every network of networks.py, as PyTorch exports it, has PyTorch's parameters exactly
and its multiply-adds within 0.1 %.

  held_to_torch.py REHEARSE [FOLDER] [--only NAME,...] [--opsets 11,13,16] [--quick] [--large]

FOLDER keeps the exported files (without weights); those that it has already are not exported again. Exits with 77,
which ctest calls skipped, where PyTorch is absent. Exits with 1 when a file is refused or a count differs, unless
networks.py says what the export itself lost (LOST).
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def counted(rehearse, file, training):
    unfold = [] if training else ["--unfold"]  # an export for inference folds batch normalization into convolutions
    run = subprocess.run([rehearse, "models", str(file), "--format", "json", *unfold], capture_output=True, text=True,
                         timeout=300)
    if run.returncode != 0:
        return None, run.stderr.strip().splitlines()[-1] if run.stderr else f"exit code {run.returncode}"
    return json.loads(run.stdout), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rehearse")
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--opsets", default="11,13,16")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    try:
        sys.path.insert(0, str(HERE))
        import networks
        import onnx  # noqa: F401
        import torchvision  # noqa: F401
    except ModuleNotFoundError as error:
        print(f"skipped: {error} (Debian: python3-torch, python3-torchvision, python3-onnx)")
        return 77
    folder = options.folder or pathlib.Path(tempfile.mkdtemp(prefix="rehearse-torch-"))
    if not (folder / "counts.json").exists():
        more = [f"--{word}" for word in ("quick", "large") if getattr(options, word)]
        subprocess.run([sys.executable, str(HERE / "export_networks.py"), str(folder), "--only", options.only, "--opsets",
                        options.opsets, *more], check=True)
    counts = json.loads((folder / "counts.json").read_text())
    imported = parameters = work = wrong = 0
    for name, expected in counts.items():
        network, why = counted(options.rehearse, folder / name, expected["training"])
        if network is None:
            wrong += 1
            print(f"{name}: refused: {why}")
            continue
        imported += 1
        lost = networks.LOST.get(name.split(".")[0] + ("" if expected["training"] else ".eval"))
        same = network["parameters"] == expected["parameters"]
        # PyTorch makes products of weights alone once for all samples that it was fed with.
        once = network["multiply_adds_once"]
        network["multiply_adds"] += once / expected.get("samples", 1) - once
        near = abs(network["multiply_adds"] - expected["multiply_adds"]) <= 1e-3 * max(1, expected["multiply_adds"])
        parameters += same
        work += near
        if same and near:
            continue
        if near and lost:
            print(f"{name}: {network['parameters']} parameters for {expected['parameters']}: {lost}")
            continue
        wrong += 1
        print(f"{name}: {network['parameters']} parameters for {expected['parameters']}, {network['multiply_adds']:.0f} "
              f"multiply-adds for {expected['multiply_adds']:.0f}")
    print(f"{imported} of {len(counts)} files import, {parameters} have PyTorch's parameters, {work} its multiply-adds")
    return 1 if wrong or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
