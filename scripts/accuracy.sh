#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Predicted against measured training steps on this machine: calibrates each place, then predicts and trains each network
# with each plan. Keep everything else quiet meanwhile; it can be done piece by piece:
#
#   scripts/accuracy.sh                                          everything that was not done before: half an hour
#   scripts/accuracy.sh --places local,net2-1gbit --models mlp   a piece of it
#   scripts/accuracy.sh --summary                                what there is so far
#
# Places: local (2 ranks, shared memory), net2-1gbit, net2-200mbit, net4-1gbit, net4-200mbit (hosts of netlab.sh, as
# root). --plans data|split: every all-reduce algorithm, or pipelines and tensor parallelism. --calibrate only does that.
# Rows go to --out (build/accuracy)/rows.csv; a row that is there is not measured again. --rehearse FILE is the program.
set -euo pipefail
cd "$(dirname "$0")/.."

wrong() { echo "accuracy: $*; see the head of $0" >&2; exit 2; }
places=local,net2-1gbit,net2-200mbit,net4-1gbit,net4-200mbit models=resnet32,vgg8,mlp plans=data out=build/accuracy
rehearse=build/release/cli/rehearse batch=16 repeats=3 seconds=2 only=
while [[ $# -gt 0 ]]; do
    case $1 in
        --summary) only=summary && shift && continue ;;
        --calibrate) only=calibrate && shift && continue ;;
        --places | --models | --plans | --out | --rehearse) [[ $# -ge 2 ]] || wrong "$1 needs a value" ;;
        *) wrong "unknown option $1" ;;
    esac
    printf -v "${1#--}" %s "$2"
    shift 2
done
[[ $plans == data || $plans == split ]] || wrong "--plans $plans: data or split"
[[ -x $rehearse ]] || wrong "$rehearse is not there: build it, or give --rehearse"
mkdir -p "$out"
rows=$out/rows.csv
[[ -e $rows ]] || echo "place,model,plan,predicted_s,low_s,high_s,measured_s,noise,steps" > "$rows"
export REHEARSE_HOME=$out OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

lab=
leave() { [[ -z $lab ]] || scripts/netlab.sh down --name "$lab"; }
trap leave EXIT
trap 'exit 130' INT TERM

# $1 place: sets ranks and how jobs are started there.
enter() {
    leave
    lab=
    if [[ $1 == local ]]; then
        ranks=2 start=(mpirun --oversubscribe -n 2)
    elif [[ $1 =~ ^net([0-9]+)-([0-9]+[mg]bit)$ ]]; then
        ranks=${BASH_REMATCH[1]}
        scripts/netlab.sh up "$ranks" --rate "${BASH_REMATCH[2]}" --name "acc$$"
        lab=acc$$
        start=(scripts/netlab.sh run "$ranks" --name "$lab")
    else
        wrong "place '$1'"
    fi
}

plans_of() {  # of so many ranks
    if [[ $plans == data ]]; then
        local a
        for a in ring doubling halving tree doubletree "torus($(($1 / 2))x2)" "hierarchical(ring,ring)"; do
            echo "data:allreduce=$a"
        done
    else
        echo "pipe=$1:schedule=gpipe:microbatches=4"
        echo "pipe=$1:schedule=1f1b:microbatches=4"
        echo "tensor=$1"
        [[ $1 -lt 4 ]] || echo "data=2,pipe=2:schedule=1f1b:microbatches=4"
    fi
}

calibrate() {  # place
    local machine=$out/$1-$plans.toml plan all=()
    [[ ! -e $machine ]] || return 0
    echo "calibrating $1" >&2
    if [[ $plans == data ]]; then
        all=(--plan data)
    else
        while read -r plan; do all+=(--plan "$plan"); done < <(plans_of "$ranks")
    fi
    "${start[@]}" "$rehearse" calibrate --model "$models_all" --batch "$batch" "${all[@]}" --budget 25 --tune=off \
        --machine-out "$machine" --report --plot "$out/$1-$plans.svg" --force --output "$out/$1-$plans.txt" >&2
}

field() { python3 -c "import json, sys; p = json.load(open(sys.argv[1]))['points'][0]; print(*(p[k] for k in sys.argv[2:]))" "$@"; }

# Runs of a program of its own each: what differs between them is noise that a user meets.
measure() {  # place model plan
    local machine=$out/$1-$plans.toml predicted low high steps i all=()
    grep -qF "$1,$2,\"$3\"," "$rows" && return 0
    "$rehearse" predict --model "$2" --machine "$machine" --devices "$ranks" --plan "$3" --batch "$batch" \
        --format json --output "$out/predicted.json" --force
    read -r predicted low high < <(field "$out/predicted.json" step_s step_low_s step_high_s)
    steps=$(python3 -c "print(max(5, min(40, round($seconds / $predicted))))")
    for ((i = 0; i < repeats; ++i)); do
        "${start[@]}" "$rehearse" run --model "$2" --machine "$machine" --plan "$3" --batch "$batch" --steps "$steps" \
            --tune=off --learning-rate 1e-4 --format json --output "$out/measured$i.json" --force
        all+=("$(field "$out/measured$i.json" step_s)")
    done
    python3 - "$1,$2,\"$3\",$predicted,$low,$high" "$steps" "${all[@]}" >> "$rows" << 'END'
import statistics, sys
times = [float(t) for t in sys.argv[3:]]
median = statistics.median(times)
print(f"{sys.argv[1]},{median},{1.4826 * statistics.median(abs(t - median) for t in times) / median},{sys.argv[2]}")
END
    tail -1 "$rows"
}

models_all=resnet32,vgg8,mlp
if [[ $only != summary ]]; then
    for place in ${places//,/ }; do
        enter "$place"
        calibrate "$place"
        [[ -z $only ]] || continue
        for model in ${models//,/ }; do
            while read -r plan <&3; do measure "$place" "$model" "$plan"; done 3< <(plans_of "$ranks")
        done
    done
fi
scripts/accuracy_summary.py "$rows"
