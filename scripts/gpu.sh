#!/bin/bash
# On a machine with an NVIDIA GPU: builds what it needs and no more, tests it, measures it, and leaves the results in files.
# gpu.sh [FOLDER]; the folder (default gpu-results) must not exist yet.
# Needs the CUDA toolkit and the packages of scripts/packages.txt; MPI, SimGrid and Qt are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-gpu-results}
[ ! -e "$out" ] || { echo "gpu.sh: $out is there already: name another folder" >&2; exit 2; }
command -v nvidia-smi > /dev/null || { echo "gpu.sh: no nvidia-smi: this machine has no NVIDIA driver" >&2; exit 3; }
architecture=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
[ "$architecture" = 90 ] && architecture=90a
mkdir -p "$out"
nvidia-smi > "$out/nvidia-smi.txt"

cmake -S . -B build/gpu -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES="$architecture" \
    -DREHEARSE_CUDA=ON -DREHEARSE_SIM=OFF -DREHEARSE_MPI=OFF > "$out/configure.txt"
cmake --build build/gpu -j "$(nproc)" --target rehearse gpu_kernels test_kernels_cuda > "$out/build.txt"
build/gpu/tests/kernels/test_kernels_cuda --gtest_filter='*Gpu' 2>&1 | tee "$out/test.txt"

# Each network's convolutions, at two batches, in every type.
for network in resnet50 vgg16; do
    for batch in 32 256; do
        build/gpu/cli/rehearse bench conv --suite "$network" --batch "$batch" --list
    done
done | sed 'p; s/:f32:/:f16:/p; s/:f16:/:bf16:/' | sort -u > "$out/problems.txt"
build/gpu/bench/gpu_kernels < "$out/problems.txt" > "$out/kernels.csv" 2> "$out/refused.txt" || echo "gpu.sh: gpu_kernels: exit $?" >&2
ls "$out"
