#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Steps of PyTorch's DistributedDataParallel over gloo on two processes of this host, predicted from one process, against
# measured ones. Each network is profiled on one process, the profile becomes prices (calibrate --trace), and two
# processes are predicted; once more from the measured step of one process alone (predict --pilot). In turns: the host is
# not the same from one minute to the next. Prints a row a network, then the median and the worst error of each.
#
#   scripts/pytorch_accuracy.sh                                  all three networks, three turns: ten minutes
#   scripts/pytorch_accuracy.sh --networks dense --turns 1       a piece of it
#
# Options: --rehearse FILE (build/release/cli/rehearse), --python FILE (/usr/bin/python3, Debian's with python3-torch and
# python3-onnx), --out FOLDER (build/pytorch), --machine FILE.toml (else `calibrate --quick --transport sockets` on
# two ranks), --batch N, --steps N. Exit code 77 where there is no PyTorch. Keep everything else quiet meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

wrong() { echo "pytorch_accuracy: $*; see the head of $0" >&2; exit 2; }
rehearse=build/release/cli/rehearse python=/usr/bin/python3 out=build/pytorch networks=resnet,bert,dense turns=3 batch=16 steps=20 machine=
while [[ $# -gt 0 ]]; do
    case $1 in
        --rehearse | --python | --out | --networks | --turns | --batch | --steps | --machine) [[ $# -ge 2 ]] || wrong "$1 needs a value" ;;
        *) wrong "unknown option $1" ;;
    esac
    printf -v "${1#--}" %s "$2"
    shift 2
done
[[ $turns =~ ^[1-9][0-9]*$ && $batch =~ ^[1-9][0-9]*$ && $steps =~ ^[1-9][0-9]*$ ]] || wrong "--turns, --batch and --steps are numbers from 1"
[[ -x $rehearse ]] || wrong "$rehearse is not there: build it, or give --rehearse"
"$python" -c "import torch, onnx" 2> /dev/null || { echo "pytorch_accuracy: skipped: no PyTorch and onnx in $python" >&2; exit 77; }
mkdir -p "$out"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if [[ -z $machine ]]; then
    machine=$out/host.toml
    [[ -e $machine ]] || mpirun --oversubscribe --bind-to none -n 2 "$rehearse" calibrate --quick --transport sockets --model mlp --batch "$batch" --machine-out "$machine" -q > "$out/calibrate.txt" || [[ $? == 1 ]]
fi

train() { timeout 300 "$python" scripts/pytorch_train.py "$@" --batch "$batch" --steps "$steps"; }
step_of() { "$python" -c 'import json, sys; print(json.load(sys.stdin)["step_s"])'; }
predicted() {
    "$rehearse" predict --batch "$batch" --devices 2 --framework pytorch-ddp-gloo --format json -q "$@" |
        "$python" -c 'import json, sys; print(json.load(sys.stdin)["points"][0]["step_s"])'
}

rows=$out/rows.csv
echo "turn,network,load,one_s,measured_s,from_profile_s,from_pilot_s" > "$rows"
for ((turn = 1; turn <= turns; ++turn)); do
    for network in ${networks//,/ }; do
        model=$out/$network.onnx trace=$out/$network.json.gz prices=$out/$network.toml
        [[ -e $model ]] || "$python" scripts/pytorch_train.py "$network" --export "$model" 2> "$out/export.txt"
        one=$(train "$network" --profile "$trace" | step_of)
        "$rehearse" calibrate --trace "$trace" --model "$model" --batch "$batch" --machine "$machine" --machine-out "$prices" --force -q > "$out/$network.txt"
        profile=$(predicted --model "$model" --machine "$prices")
        pilot=$(predicted --model "$model" --machine "$machine" --pilot "1=${one}s")
        two=$(train "$network" --ranks 2 | step_of)
        echo "$turn,$network,$(cut -d ' ' -f 1 /proc/loadavg),$one,$two,$profile,$pilot" >> "$rows"
    done
done
"$python" - "$rows" <<'END'
import csv
import statistics
import sys

rows = list(csv.DictReader(open(sys.argv[1])))
errors = {"from_profile_s": [], "from_pilot_s": []}
print(f"{'network':8} {'one process':>12} {'two, measured':>14} {'by the profile':>24} {'by the pilot alone':>24}")
for network in dict.fromkeys(row["network"] for row in rows):
    def middle(key):
        return statistics.median(float(row[key]) for row in rows if row["network"] == network)
    texts = []
    for key, found in errors.items():
        error = middle(key) / middle("measured_s") - 1
        found.append(abs(error))
        texts.append(f"{middle(key) * 1e3:9.1f} ms ({error:+6.1%})")
    print(f"{network:8} {middle('one_s') * 1e3:9.1f} ms {middle('measured_s') * 1e3:11.1f} ms {texts[0]:>24} {texts[1]:>24}")
print(f"load of the host: median {statistics.median(float(row['load']) for row in rows):.1f}")
for key, found in errors.items():
    print(f"{key[:-2].replace('_', ' the ')}: median error {statistics.median(found):.1%}, worst {max(found):.1%}")
END
