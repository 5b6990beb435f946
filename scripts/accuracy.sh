#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Predicted against measured training steps on this machine: calibrates each place, predicts and trains each network
# with each plan, in three turns (--turns N). Keep everything else quiet meanwhile; it can be done piece by piece:
#
#   scripts/accuracy.sh                                          everything that was not done before: an hour
#   scripts/accuracy.sh --places local,net2-1gbit --models mlp   a piece of it
#   scripts/accuracy.sh --summary                                what there is so far
#
# Places: local1, local and local4 (1, 2 and 4 ranks, shared memory), net2-1gbit, net2-200mbit, net4-1gbit, net4-200mbit (hosts of
# netlab.sh, as root). --plans data|split: every all-reduce algorithm, or pipelines, tensor and spatial parallelism and hybrids.
# --on NETWORK,...: calibrates on these alone, once a turn, so that the networks of --models are new to the prices.
# Rows go to --out (build/accuracy)/rows.csv; a row that is there is not measured again. --rehearse FILE is the program.
set -euo pipefail
cd "$(dirname "$0")/.."

wrong() { echo "accuracy: $*; see the head of $0" >&2; exit 2; }
places=local,net2-1gbit,net2-200mbit,net4-1gbit,net4-200mbit models=resnet32,vgg8,mlp plans=data out=build/accuracy
rehearse=build/release/cli/rehearse batch=16 turns=3 seconds=1 only= on= budget=15
while [[ $# -gt 0 ]]; do
    case $1 in
        --summary) only=summary && shift && continue ;;
        --places | --models | --plans | --turns | --out | --rehearse | --on | --batch | --budget) [[ $# -ge 2 ]] || wrong "$1 needs a value" ;;
        *) wrong "unknown option $1" ;;
    esac
    printf -v "${1#--}" %s "$2"
    shift 2
done
[[ $plans == data || $plans == split ]] || wrong "--plans $plans: data or split"
[[ -z $on || $plans == data ]] || wrong "--on: with --plans data alone"
[[ $turns =~ ^[1-9][0-9]*$ ]] || wrong "--turns $turns: a number from 1"
[[ -x $rehearse ]] || wrong "$rehearse is not there: build it, or give --rehearse"
mkdir -p "$out"
rows=$out/rows.csv
[[ -e $rows ]] || echo "place,model,plan,predicted_s,low_s,high_s,measured_s,noise,turns" > "$rows"
export REHEARSE_HOME=$out OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

lab=
leave() { [[ -z $lab ]] || scripts/netlab.sh down --name "$lab"; }
trap leave EXIT
trap 'exit 130' INT TERM

# $1 place: sets ranks and how jobs are started there.
enter() {
    leave
    lab=
    if [[ $1 =~ ^local([14]?)$ ]]; then
        ranks=${BASH_REMATCH[1]:-2} start=(mpirun --oversubscribe -n "$ranks")
    elif [[ $1 =~ ^net([0-9]+)-([0-9]+[mg]bit)$ ]]; then
        ranks=${BASH_REMATCH[1]}
        scripts/netlab.sh up "$ranks" --rate "${BASH_REMATCH[2]}" --name "acc$$"
        lab=acc$$
        start=(scripts/netlab.sh run "$ranks" --name "$lab")
    else
        wrong "place '$1'"
    fi
}

plans_of() {  # of so many ranks; of this network
    if [[ $plans == data && ($1 == 1 || -n $on) ]]; then
        echo data
    elif [[ $plans == data ]]; then
        local a
        for a in ring doubling halving tree doubletree "torus($(($1 / 2))x2)" "hierarchical(ring,ring)"; do
            echo "data:allreduce=$a"
        done
    else
        echo "pipe=$1:schedule=gpipe:microbatches=4"
        echo "pipe=$1:schedule=1f1b:microbatches=4"
        echo "tensor=$1"
        [[ $2 == mlp ]] || echo "spatial=$1"  # which has no image
        [[ $1 -lt 4 ]] || echo "data=2,pipe=2:schedule=1f1b:microbatches=4"
    fi
}

calibrate() {  # place model file
    local plan all=() plot=(--plot "${3%.toml}.svg")
    [[ $ranks -gt 1 ]] || plot=()  # of messages
    if [[ $plans == data ]]; then
        all=(--plan data)
    else
        while read -r plan; do all+=(--plan "$plan"); done < <(plans_of "$ranks" "$2")
    fi
    "${start[@]}" "$rehearse" calibrate --model "$2" --batch "$batch" "${all[@]}" --budget "$budget" --tune=off \
        --machine-out "$3" --report "${plot[@]}" --force --output "${3%.toml}.txt" >&2 || [[ $? == 1 ]]  # 1: its own steps contradict it, which the rows will show
}

field() { python3 -c "import json, sys; p = json.load(open(sys.argv[1]))['points'][0]; print(*(p[k] for k in sys.argv[2:]))" "$@"; }

# The prediction and the run of each plan of a network, a line each.
predict_and_run() {  # place model machine-file
    local plan step low high steps
    while read -r plan <&3; do
        "$rehearse" predict --model "$2" --machine "$3" --devices "$ranks" --plan "$plan" --batch "$batch" \
            --format json --output "$out/predicted.json" --force
        read -r step low high < <(field "$out/predicted.json" step_s step_low_s step_high_s)
        steps=$(python3 -c "print(max(5, min(40, round($seconds / $step))))")
        "${start[@]}" "$rehearse" run --model "$2" --machine "$3" --plan "$plan" --batch "$batch" --steps "$steps" \
            --tune=off --learning-rate 1e-4 --format json --output "$out/measured.json" --force
        echo "$plan $step $low $high $(field "$out/measured.json" step_s)"
    done 3< <(plans_of "$ranks" "$2")
}

# In turn: a calibration, then a prediction and a run (a program of its own) of each plan. A host that is slow for some
# minutes is then slow on both sides, and what differs between the turns is noise that a user meets.
measure() {  # place model
    local name=$out/$1-$2-$plans times i
    times=$(mktemp)
    for ((i = 0; i < turns; ++i)); do
        echo "$1, $2: turn $((i + 1)) of $turns" >&2
        calibrate "$1" "$2" "$name-$i.toml"
        predict_and_run "$1" "$2" "$name-$i.toml" >> "$times"
    done
    scripts/accuracy_summary.py --place "$1" --model "$2" "$times" >> "$rows"
    rm "$times"
}

# One calibration on other networks, then each network, in turn.
measure_unseen() {  # place
    local name=$out/$1-unseen folder model i
    folder=$(mktemp -d)
    for ((i = 0; i < turns; ++i)); do
        echo "$1: turn $((i + 1)) of $turns, load $(cut -d' ' -f1-3 /proc/loadavg)" >&2
        calibrate "$1" "$on" "$name-$i.toml"
        for model in ${models//,/ }; do
            predict_and_run "$1" "$model" "$name-$i.toml" >> "$folder/$model"
        done
    done
    for model in ${models//,/ }; do
        scripts/accuracy_summary.py --place "$1" --model "$model" "$folder/$model" >> "$rows"
    done
    rm -r "$folder"
}

if [[ $only != summary ]]; then
    for place in ${places//,/ }; do
        enter "$place"
        [[ -z $on ]] || { measure_unseen "$place"; continue; }
        for model in ${models//,/ }; do
            grep -qF "$place,$model,$(plans_of "$ranks" "$model" | head -1)," "$rows" || measure "$place" "$model"
        done
    done
fi
scripts/accuracy_summary.py "$rows"
