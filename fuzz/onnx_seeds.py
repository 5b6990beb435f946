#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small ONNX files to begin fuzzing with: ONNX's own node tests (onnx.backend.test), one operator each, with what shapes
follow from as initializers.

  onnx_seeds.py FOLDER

Files of at most 4 KiB whose names are their tests'; scripts/fuzz.sh calls it where python3-onnx is installed.
"""
import pathlib
import sys
import warnings

MOST = 4096  # bytes

warnings.filterwarnings("ignore")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "torch"))


def main():
    try:
        import every_operator
        folder, count = pathlib.Path(sys.argv[1]), 0
        for name, model in every_operator.cases():
            data = model.SerializeToString()
            if len(data) <= MOST:
                (folder / name).write_bytes(data)
                count += 1
    except ImportError as error:
        print(f"no seeds: {error} (Debian: python3-onnx)", file=sys.stderr)
        return 0
    print(f"{count} seeds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
