#!/bin/bash
# On a machine with an NVIDIA GPU: builds what it needs and no more, tests it, measures it, trains on it, and leaves the
# results in files. gpu.sh [FOLDER]; the folder (default gpu-results) must not exist yet. About 20 minutes on 16 cores.
# Needs the CUDA toolkit (with cuDNN 9, or without) and the packages of scripts/packages.txt; with an MPI it trains, too.
# A part that fails says so in FOLDER/failed.txt and does not stop the others: the machine may be there only once.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:-gpu-results}
[ ! -e "$out" ] || { echo "gpu.sh: $out is there already: name another folder" >&2; exit 2; }
command -v nvidia-smi > /dev/null || { echo "gpu.sh: no nvidia-smi: this machine has no NVIDIA driver" >&2; exit 3; }
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
[ "$architecture" = 90 ] && architecture=90a
mkdir -p "$out"
nvidia-smi > "$out/nvidia-smi.txt"
failed() { echo "$1: exit $2" | tee -a "$out/failed.txt" >&2; }
# part NAME SECONDS COMMAND...: its output in NAME.txt
part() {
    local name=$1 limit=$2
    shift 2
    echo "gpu.sh: $name"
    timeout "$limit" "$@" > "$out/$name.txt" 2> "$out/$name.err" || failed "$name" $?
}
mpi=OFF
command -v mpirun > /dev/null && mpi=ON

part configure 120 cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES="$architecture" \
    -DREHEARSE_CUDA=ON -DREHEARSE_SIM=OFF -DREHEARSE_GUI=OFF -DREHEARSE_MPI=$mpi
part build 600 cmake --build build/gpu -j "$(nproc)" --target rehearse gpu_kernels test_kernels_cuda \
    test_kernels_cuda_layers test_kernels_cudnn
[ -x build/gpu/cli/rehearse ] || { echo "gpu.sh: nothing was built: see $out/build.txt" >&2; exit 3; }
rehearse=build/gpu/cli/rehearse

part test_sums 120 build/gpu/tests/kernels/test_kernels_cuda --gtest_filter='*Gpu*'
part test_layers 120 build/gpu/tests/kernels/test_kernels_cuda_layers --gtest_filter='*Gpu*'
part test_cudnn 180 build/gpu/tests/kernels/test_kernels_cudnn

# What the machine file needs first: should the time end, it is there.
part calibrate 300 $rehearse calibrate --device cuda --model resnet50,vgg16 --batch 32 --machine-out "$out/gpu.toml"

# Each network's convolutions in every type, by every algorithm.
for network in resnet50 vgg16; do
    $rehearse bench conv --suite "$network" --batch 32 --list
done | sed 'p; s/:f32:/:f16:/p; s/:f16:/:bf16:/' | sort -u > "$out/problems.txt"
echo "gpu.sh: kernels"
timeout 480 build/gpu/bench/gpu_kernels < "$out/problems.txt" > "$out/kernels.csv" 2> "$out/kernels.err" || failed kernels $?

if [ $mpi = ON ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    part check_lenet5 60 $rehearse run --device cuda --model lenet5 --batch 32 --steps 3 --check-gradients
    for network in resnet50 vgg16; do
        part "train_$network" 120 $rehearse run --device cuda --model "$network" --batch 32 --steps 8 --format json \
            --trace "$out/$network.json"
    done
    part two_ranks 120 mpirun --oversubscribe -n 2 $rehearse run --device cuda --model resnet50 --batch 16 --steps 5
fi
[ -e "$out/failed.txt" ] && { cat "$out/failed.txt" >&2; exit 1; }
ls "$out"
