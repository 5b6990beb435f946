#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Steps of PyTorch's DistributedDataParallel over gloo on two processes, predicted from one process, against measured
# ones. Two processes train in turns of a few steps, one alone and both together, so that both sides see the same host;
# what is held against each other is how many times as long two take as one. The one is profiled, the profile becomes
# prices (calibrate --trace), and two are predicted; once more from the measured step of one process alone (predict
# --pilot). Prints a row a network, then the median and the worst error of each.
#
#   scripts/pytorch_accuracy.sh                                  all three networks, three turns, shared memory: five minutes
#   scripts/pytorch_accuracy.sh --net 1gbit                      ... on two hosts of netlab.sh, as root
#   scripts/pytorch_accuracy.sh --networks dense --turns 1       a piece of it
#
# Options: --rehearse FILE (build/release/cli/rehearse), --python FILE (/usr/bin/python3, Debian's with python3-torch and
# python3-onnx), --out FOLDER (build/pytorch), --machine FILE.toml (else `calibrate --quick --transport sockets` on
# two ranks), --batch N, --rounds N, --steps N (of a round). Exit code 77 where there is no PyTorch.
set -euo pipefail
cd "$(dirname "$0")/.."

wrong() { echo "pytorch_accuracy: $*; see the head of $0" >&2; exit 2; }
rehearse=build/release/cli/rehearse python=/usr/bin/python3 out=build/pytorch networks=resnet,bert,dense turns=3 batch=16 rounds=9 steps=3 machine= net=
while [[ $# -gt 0 ]]; do
    case $1 in
        --rehearse | --python | --out | --networks | --turns | --batch | --rounds | --steps | --machine | --net) [[ $# -ge 2 ]] || wrong "$1 needs a value" ;;
        *) wrong "unknown option $1" ;;
    esac
    printf -v "${1#--}" %s "$2"
    shift 2
done
for number in turns batch rounds steps; do [[ ${!number} =~ ^[1-9][0-9]*$ ]] || wrong "--$number is a number from 1"; done
[[ -x $rehearse ]] || wrong "$rehearse is not there: build it, or give --rehearse"
"$python" -c "import torch, onnx" 2> /dev/null || { echo "pytorch_accuracy: skipped: no PyTorch and onnx in $python" >&2; exit 77; }
mkdir -p "$out"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
lab=
leave() { [[ -z $lab ]] || scripts/netlab.sh down --name "$lab"; }
trap leave EXIT
if [[ -n $net ]]; then
    scripts/netlab.sh up 2 --rate "$net" --name "acc$$"
    lab=acc$$
    start=(scripts/netlab.sh run 2 --name "$lab")
else
    start=(mpirun --oversubscribe --bind-to none -n 2)
fi
if [[ -z $machine ]]; then
    machine=$out/host${net:+-$net}.toml
    [[ -e $machine ]] || "${start[@]}" "$rehearse" calibrate --quick --transport sockets --model mlp --batch "$batch" --machine-out "$machine" -q > "$out/calibrate.txt" || [[ $? == 1 ]]
fi

value() { "$python" -c 'import functools, json, sys; print(functools.reduce(lambda at, key: at[int(key) if key.isdigit() else key], sys.argv[1:], json.load(sys.stdin)))' "$@"; }
# One of its lines is JSON; mpirun and netlab's hosts start ranks, which find each other by PyTorch's variables.
train() {
    local address=127.0.0.1 port=$((20000 + RANDOM % 10000)) words
    [[ -z $net ]] || address=10.77.0.1
    words=$(printf '%q ' "$python" scripts/pytorch_train.py "$@" --batch "$batch" --rounds "$rounds" --steps "$steps")
    timeout 300 "${start[@]}" bash -c "cd $(printf %q "$PWD"); export RANK=\$OMPI_COMM_WORLD_RANK WORLD_SIZE=2 MASTER_ADDR=$address MASTER_PORT=$port${net:+ GLOO_SOCKET_IFNAME=eth0}; exec $words" | grep '^{'
}
predicted() { "$rehearse" predict --batch "$batch" --framework pytorch-ddp-gloo --format json -q "$@"; }

rows=$out/rows${net:+-$net}.csv
echo "turn,network,load,one_s,measured_s,ratio,profile_one_s,profile_s,pilot_s" > "$rows"
for ((turn = 1; turn <= turns; ++turn)); do
    for network in ${networks//,/ }; do
        model=$out/$network.onnx trace=$out/$network.json.gz prices=$out/$network.toml found=$out/$network.json
        [[ -e $model ]] || "$python" scripts/pytorch_train.py "$network" --export "$model" 2> "$out/export.txt"
        train "$network" --profile "$trace" > "$found"
        "$rehearse" calibrate --trace "$trace" --model "$model" --batch "$batch" --machine "$machine" --machine-out "$prices" --force -q > "$out/$network.txt"
        one=$(value alone_s < "$found")
        predicted --model "$model" --machine "$prices" --devices 1,2 > "$out/points.json"
        pilot=$(predicted --model "$model" --machine "$machine" --devices 2 --pilot "1=${one}s" | value points 0 step_s)
        echo "$turn,$network,$(cut -d ' ' -f 1 /proc/loadavg),$one,$(value step_s < "$found"),$(value ratio < "$found"),$(value points 0 step_s < "$out/points.json"),$(value points 1 step_s < "$out/points.json"),$pilot" >> "$rows"
    done
done
"$python" - "$rows" <<'END'
import csv
import statistics
import sys

rows = list(csv.DictReader(open(sys.argv[1])))
errors = {"the profile": [], "the pilot": []}
print(f"{'network':8} {'one process':>12} {'two':>12} {'two / one':>10} {'by the profile':>20} {'by the pilot alone':>20}")
for network in dict.fromkeys(row["network"] for row in rows):
    turns = [{key: float(each) for key, each in row.items() if key != "network"} for row in rows if row["network"] == network]
    def middle(figure):
        return statistics.median(figure(turn) for turn in turns)
    texts = []
    for (name, found), ratio in zip(errors.items(), (lambda t: t["profile_s"] / t["profile_one_s"], lambda t: t["pilot_s"] / t["one_s"])):
        error = middle(lambda t: ratio(t) / t["ratio"] - 1)
        found.append(abs(error))
        texts.append(f"{middle(ratio):9.3f} ({error:+6.1%})")
    print(f"{network:8} {middle(lambda t: t['one_s']) * 1e3:9.1f} ms {middle(lambda t: t['measured_s']) * 1e3:9.1f} ms "
          f"{middle(lambda t: t['ratio']):10.3f} {texts[0]:>20} {texts[1]:>20}")
print(f"load of the host: median {statistics.median(float(row['load']) for row in rows):.1f}")
for name, found in errors.items():
    print(f"from {name}: median error {statistics.median(found):.1%}, worst {max(found):.1%}")
END
