#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the chart of each founding system's page, predicted anew: docs/pictures/systems/*.svg.

  system_charts.py build/dev/cli/rehearse              # all of them
  system_charts.py build/dev/cli/rehearse kfac dlrm    # these
  system_charts.py --list                              # the command of each
  system_charts.py --check                             # exit 1 where a chart is missing, or no page shows it

Each is what `rehearse predict` draws with --plot: throughput over devices, with its band where there is one.
"""
import argparse
import pathlib
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
FOLDER = DOCS / "pictures" / "systems"
CHARTS = {
    "cori-hybrid": "--model hep-cnn --machine cori-knl --devices 262,518,1030,2054,4126,9606 --batch 8 --optimizer adam "
                   "--framework caffe-cori --input lustre --loader inline:read=ahead "
                   "--plan server=6,groups=8,data:allreduce=halving:bucket=1B:first=1B",
    "exascale-climate": "--model deeplabv3plus --machine summit --devices 6,96,1536,6144,27360 --batch 1 --optimizer adam "
                        "--framework climate-horovod --plan data:lag=1",
    "parameter-servers": "--model alexnet --machine adam-commodity --devices 6,10,18,34,66 --batch 32 --plan server=2,data",
    "crossbow": "--model resnet32 --machine titanx-server --devices 1,2,4,8 --batch 512 --plan data:learners=2:local=4",
    "dlrm": "--model dlrm-mlperf --machine clx-opa --devices 1,2,13,26 --global-batch 16640 --plan data:tables=shared",
    "cosmoflow": "--model cosmoflow --machine cori-knl --devices 1,64,512,2048,8192 --batch 1",
    "spatial": "--model cosmoflow --machine summit --devices 8,32,128,512,2048 --batch 1 --plan data,spatial=2x2x2",
    "adasum": "--model resnet50 --machine dgx2 --devices 2,4,8,16 --batch 32 --plan data:allreduce=adasum:bucket=1B:first=1B",
    "kfac": "--model vgg16 --machine abci --devices 4,16,64,256 --batch 320 --plan data:kfac=10",
    "pipelines": "--model vgg16 --machine azure-nc24rs-v3 --devices 4,8,16 --batch 64 "
                 "--plan data,pipe=4:schedule=pipedream:microbatches=4",
    "context": "--model megatron-7.5b --machine selene --devices 32,64,128,256 --batch 1 --precision mixed "
               "--plan data,context=4:ring=on,tensor=4",
    "recurrent": "--model gnmt@28 --machine dgx1-v100 --devices 1,2,4,8 --batch 128 --precision mixed --optimizer adam",
    "graphs": "--model schnet --machine dgx1-v100 --devices 1,2,4,8 --batch 32",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        pages = "".join(page.read_text() for page in DOCS.rglob("*.md"))
        drawn = {chart.stem for chart in FOLDER.glob("*.svg")}
        wrong = [f"{name}: not drawn" for name in CHARTS.keys() - drawn] + [f"{name}: no command" for name in drawn - CHARTS.keys()]
        wrong += [f"{name}: on no page" for name in CHARTS if f"pictures/systems/{name}.svg)" not in pages]
        sys.exit("\n".join(sorted(wrong)) if wrong else 0)
    if arguments.list:
        print("\n".join(f"{name}: rehearse predict {words}" for name, words in CHARTS.items()))
        return
    if not arguments.binary:
        parser.error("name the program rehearse")
    unknown = set(arguments.names) - set(CHARTS)
    if unknown:
        parser.error(f"no chart is called {', '.join(sorted(unknown))}; there are {', '.join(CHARTS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or CHARTS:
        drawing = ["--plot", str(FOLDER / f"{name}.svg"), "--force", "-q"]
        made = subprocess.run([arguments.binary, "predict", *CHARTS[name].split(), *drawing], capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"{name}: {made.stderr}")


if __name__ == "__main__":
    main()
