#!/bin/bash
# On a machine with an NVIDIA GPU: builds what it needs and no more, measures it, trains on it, tests it, and leaves the
# results in files, what is worth most first: roofs; for each network and batch the measured training step and the machine
# file from which it is predicted; each network's convolutions; the tests. Each stage ends within ten minutes and leaves
# its files, so that whatever time there is leaves data. A stage that fails or is left out says so in FOLDER/failed.txt or
# FOLDER/skipped.txt and does not stop the others: the machine may be there only once.
#
#   scripts/gpu.sh [OPTIONS] [FOLDER]      FOLDER: default build/gpu-results
#     --slice SECONDS    ends in time, with exit code 75 where something is left: the same command goes on with it
#     --networks a,b     what is trained, calibrated and benched (resnet50,vgg16,bert-large)
#     --batches n,m      of all of these (32,256)
#     --types t,u        of the benches (f16,f32,bf16)
#     --only part,part   build, roofs, steps, kernels, test, ranks (all, in this order)
#     --stages           says which stages there are, in their order, and which are done; starts nothing
#     --architecture NN  what is compiled for (what the GPU says; 90 becomes 90a)
#     --build-only       also where no GPU is: builds, and runs the tests that play the GPU on the host
#   scripts/gpu.sh --compare FOLDER        on a machine with SimGrid: predictions for the calibrated GPU against what was
#                                          measured there, REHEARSE=build/release/cli/rehearse unless it says otherwise
#
# What is done is noted in FOLDER/done and not done again. Needs the CUDA toolkit (cuDNN 9 and cuBLAS are used where they
# are) and the packages of scripts/packages.txt; SimGrid and Qt are not needed, training needs an MPI. Exit code 3 where
# there is no GPU, 1 where a stage failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
parts=build,roofs,steps,kernels,test,ranks
networks=resnet50,vgg16,bert-large batches=32,256 types=f16,f32,bf16 only=$parts
longest=600  # seconds of a stage
architecture="" build_only=no stages=no compare="" out="" slice=0
die() { echo "gpu.sh: $2" >&2; exit "$1"; }
while [ $# -gt 0 ]; do
    case "$1" in
        --slice | --networks | --batches | --types | --only | --architecture | --compare)
            [ $# -gt 1 ] || die 2 "$1: needs a value"
            printf -v "${1#--}" %s "$2"
            shift 2 ;;
        --build-only) build_only=yes; shift ;;
        --stages) stages=yes; shift ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        -*) die 2 "$1: unknown; --help lists the options" ;;
        *) [ -z "$out" ] || die 2 "$1: one folder, not two"; out=$1; shift ;;
    esac
done
[[ "$slice" =~ ^[0-9]+$ ]] || die 2 "--slice $slice: whole seconds, like 540"
[ "$slice" -eq 0 ] || [ "$slice" -ge 60 ] || die 2 "--slice $slice: at least 60 seconds"
for part in ${only//,/ }; do
    [[ ",$parts," == *",$part,"* ]] || die 2 "--only $part: no such part; --help lists them"
done
failed() { echo "$1: exit $2" | tee -a "$out/failed.txt" >&2; }
skipped() { echo "$1: $2" | tee -a "$out/skipped.txt" >&2; }
wanted() { [[ ",$only," == *",$1,"* ]]; }
begun=no
# part NAME SECONDS COMMAND...: its output in NAME.txt. Where the slice leaves less time than the part may take, it is left to
# the next one, unless it is this one's first; cut short by the slice's end, it begins anew. The build goes on where it was,
# as often as it takes.
part() {
    local name=$1 limit=$2 left=$2 code
    shift 2
    [ "$limit" -le $longest ] || die 1 "$name: a stage of $limit s"
    if [ $stages = yes ]; then
        echo "$name $(grep -qsx "$name" "$out/done" && echo done || echo left)"
        return
    fi
    grep -qsx "$name" "$out/done" && return
    if [ "$slice" -gt 0 ]; then
        left=$((slice - SECONDS - 5))
        if [ $left -lt 10 ] || { [ $left -lt "$limit" ] && [ $begun = yes ] && [[ "$name" != build* ]]; }; then later "$name"; fi
        [ $left -le "$limit" ] || left=$limit
    fi
    begun=yes
    echo "gpu.sh: $name"
    timeout "$left" "$@" > "$out/$name.txt" 2> "$out/$name.err"
    code=$?
    if [ $code = 124 ] && { [ "$left" -lt "$limit" ] || [[ "$name" = build* ]]; }; then later "$name"; fi
    echo "$name" >> "$out/done"
    [ $code = 0 ] || failed "$name" $code
}
later() {
    echo "gpu.sh: the time is over before $1: start it again to go on" >&2
    exit 75
}

if [ -n "$compare" ]; then
    out=$compare
    rehearse=${REHEARSE:-build/release/cli/rehearse}
    [ -x "$rehearse" ] || die 3 "$rehearse: not there: build it with SimGrid, or say REHEARSE=PATH"
    rm -f "$out/failed.txt"
    for measured in "$out"/train_*.trace.json; do
        [ -e "$measured" ] || die 2 "$out: nothing was trained there"
        name=$(basename "$measured" .trace.json)
        IFS=_ read -r _ network precision batch <<< "$name"
        machine=$out/gpu_${network}_$batch.toml
        if [ ! -e "$machine" ]; then failed "predict_$name" "2: $machine is not there"; continue; fi
        sed -i "/^predict_$name$/d;/^compare_$name$/d" "$out/done"
        part "predict_$name" 120 "$rehearse" predict --model "$network" --machine "$machine" --devices 1 --plan data \
            --batch "$batch" --precision "$precision" --trace "$out/$name.predicted.json" --force
        part "compare_$name" 60 "$rehearse" compare "$out/$name.predicted.json" "$measured"
        tail -n 3 "$out/compare_$name.txt"
    done
    [ ! -e "$out/failed.txt" ]
    exit
fi

out=${out:-build/gpu-results}
if [ $build_only = no ] && [ $stages = no ]; then
    command -v nvidia-smi > /dev/null || die 3 "skipped: no nvidia-smi: this machine has no NVIDIA driver"
    found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>&1 | head -n 1 | tr -d .)
    [[ "$found" =~ ^[0-9]+$ ]] || die 3 "skipped: nvidia-smi finds no GPU: $found"
    architecture=${architecture:-$found}
fi
[ "${architecture:=90}" = 90 ] && architecture=90a
[ $stages = yes ] || mkdir -p "$out"
[ $stages = yes ] || rm -f "$out/skipped.txt"
[ $build_only = yes ] || [ $stages = yes ] || nvidia-smi > "$out/nvidia-smi.txt"
mpi=OFF
command -v mpirun > /dev/null && mpi=ON
build=build/gpu
rehearse=$build/cli/rehearse

if wanted build; then
    part configure 120 cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_CUDA_ARCHITECTURES="$architecture" -DREHEARSE_CUDA=ON -DREHEARSE_SIM=OFF -DREHEARSE_GUI=OFF \
        -DREHEARSE_MPI=$mpi
    part build 600 cmake --build $build -j "$(nproc)" --target rehearse
fi
[ -x $rehearse ] || [ $stages = yes ] || die 3 "nothing was built: see $out/build.txt"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
train() {  # train NETWORK PRECISION BATCH STEPS
    local name=train_$1_$2_$3
    part "$name" 240 $rehearse run --device cuda --model "$1" --batch "$3" --steps "$4" --precision "$2" --format json \
        --trace "$out/$name.trace.json"
}
if [ $build_only = no ]; then
    if wanted roofs; then part roofs 180 $rehearse bench peak --device cuda --format json; fi
    # A step as it was and all that its prediction needs: each pair by itself says something.
    if wanted steps; then
        [ $mpi = ON ] || [ $stages = yes ] || skipped train "no mpirun: run needs an MPI"
        [ $mpi = ON ] && part check_lenet5 60 $rehearse run --device cuda --model lenet5 --batch 32 --steps 3 --check-gradients
        for batch in ${batches//,/ }; do
            for network in ${networks//,/ }; do
                [ $mpi = ON ] && train "$network" mixed "$batch" 10
                part "calibrate_${network}_$batch" 540 $rehearse calibrate --device cuda --model "$network" --batch "$batch" \
                    --machine-out "$out/gpu_${network}_$batch.toml" --format json
                [ $mpi = ON ] && train "$network" fp32 "$batch" 10
            done
        done
    fi
    if wanted kernels; then  # each network's convolutions or products, by every algorithm
        for type in ${types//,/ }; do
            for batch in ${batches//,/ }; do
                for network in ${networks//,/ }; do
                    kind=conv
                    [[ "$network" = bert* ]] && kind=gemm
                    name=kernels_${network}_${batch}_${type}
                    part "$name" 590 $rehearse bench $kind --device cuda --suite "$network" --batch "$batch" --type "$type" \
                        --format csv --out "$out/$name.json"
                done
            done
        done
        part kernels_attention 120 $rehearse bench attention --device cuda --suite bert-large --batch 8 --type f16 --format csv
    fi
fi
if wanted test; then
    tests="test_kernels_cuda test_kernels_cuda_layers test_kernels_cudnn test_bench_device"
    [ $mpi = ON ] && tests="$tests test_run_device"
    # shellcheck disable=SC2086
    part build_tests 600 cmake --build $build -j "$(nproc)" --target $tests
    filter='*Gpu*'
    [ $build_only = yes ] && filter='-*Gpu*'
    part test_sums 180 $build/tests/kernels/test_kernels_cuda --gtest_filter="$filter"
    part test_layers 180 $build/tests/kernels/test_kernels_cuda_layers --gtest_filter="$filter"
    part test_cudnn 180 $build/tests/kernels/test_kernels_cudnn
    part test_bench 60 $build/tests/bench/test_bench_device
    [ $mpi = ON ] && part test_run 120 $build/tests/run/test_run_device
fi
if [ $build_only = no ] && [ $mpi = ON ] && wanted ranks; then
    part two_ranks 120 mpirun --oversubscribe -n 2 $rehearse run --device cuda --model resnet50 --batch 16 --steps 5
    part two_ranks_checked 60 mpirun --oversubscribe -n 2 $rehearse run --device cuda --model lenet5 --batch 16 \
        --steps 3 --check-gradients
    part four_learners 120 $rehearse run --device cuda --model resnet32 --batch 16 --steps 20 --learners 4
    part one_learner 120 $rehearse run --device cuda --model resnet32 --batch 16 --steps 20
fi
[ $stages = no ] || exit 0
[ $build_only = no ] || skipped "everything else" "--build-only: no GPU was asked for"
ls "$out"
[ -e "$out/skipped.txt" ] && cat "$out/skipped.txt" >&2
[ ! -e "$out/failed.txt" ] || { cat "$out/failed.txt" >&2; exit 1; }
echo "gpu.sh: all done: see $out"
