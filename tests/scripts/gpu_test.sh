#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu.sh as a bundle on a machine whose GPU and program are played by scripts: it goes through its stages, says what
# failed, ends within a slice, goes on where it was, and never runs into its own files.
set -euo pipefail
script=$(cd "$(dirname "$0")/../../scripts" && pwd)/gpu.sh
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
expect_exit() {
    local code=0
    "${@:2}" > "$room/said.txt" 2>&1 || code=$?
    [[ $code == "$1" ]] || { cat "$room/said.txt"; fail "exit code $code, not $1: ${*:2}"; }
}
expect_line() { grep -qx -- "$2" "$1" || { cat "$1"; fail "no line '$2' in $1"; }; }

mkdir -p "$room/bundle/bin" "$room/bin"
cp "$script" "$room/bundle/"
gpu=$room/bundle/gpu.sh
play() { printf '#!/usr/bin/env bash\n%s\n' "$2" > "$1"; chmod +x "$1"; }
play "$room/bin/nvidia-smi" 'echo "${PLAYED_GPU-9.0}"'
for each in test_kernels_cuda test_kernels_cuda_layers test_kernels_cudnn test_bench_device test_run_ranks; do
    play "$room/bundle/bin/$each" 'exit 0'
done
play "$room/bundle/bin/mpirun" 'shift 3; exec "$@"'
# Writes the files that it is asked for, refuses to write over one without --force, as the program does; fails at VGG.
play "$room/bundle/bin/rehearse" 'echo "$*" >> "$PLAYED_LOG"
force=no
for word in "$@"; do [ "$word" = --force ] && force=yes; done
while [ $# -gt 0 ]; do
    case "$1" in
        --out | --trace | --machine-out)
            [ $force = yes ] || [ ! -e "$2" ] || exit 2
            echo "{}" > "$2" ;;
        vgg16) exit 3 ;;
    esac
    shift
done'
export PATH=$room/bin:$PATH PLAYED_LOG=$room/log.txt

expect_exit 2 "$gpu" --only nothing
expect_exit 2 "$gpu" --layouts nhcw
expect_exit 2 "$gpu" --slice 12
expect_exit 2 "$gpu" --bundle "$room/again"
PLAYED_GPU="No devices were found" expect_exit 3 "$gpu" "$room/none"
expect_exit 0 "$gpu" --stages "$room/results"
[[ ! -e $room/results ]] || fail "--stages makes nothing"

cd "$room"
expect_exit 1 "$gpu" --networks resnet50,vgg16,bert-large --batches 32 --types f16,f32 results
expect_line results/failed.txt "train_vgg16_mixed_32: exit 3"
expect_line results/done kernels_resnet50_32_f16_nhwc
expect_line results/done kernels_bert-large_8_f16_nchw
expect_line results/done train_bert-large_mixed_8
expect_line results/done test_run
expect_line results/done graphs_bert-large_mixed_8
expect_line results/done kernels_norms_nhwc
expect_line results/done tf32_resnet50_32
! grep -q f32_nhwc results/done || fail "there is no channels-last convolution in f32"
[[ -e results/gpu_resnet50_32.toml && -e results/train_resnet50_mixed_32.trace.json && -e results/libraries.txt ]] ||
    fail "a stage leaves its files"
calls=$(wc -l < log.txt)
expect_exit 1 "$gpu" --networks resnet50,vgg16,bert-large --batches 32 --types f16,f32 results
[[ $(wc -l < log.txt) == "$calls" ]] || fail "what is done is not done again"

# Again, over files that are there.
sed -i /train_resnet50_mixed_32/d results/done
rm results/failed.txt
expect_exit 0 "$gpu" --networks resnet50 --batches 32 --types f16 --only steps results
[[ $(wc -l < log.txt) == $((calls + 1)) ]] || fail "one stage was left"

# A stage that the slice's end cuts is left, and begins anew.
play "$room/bin/timeout" 'exit 124'
expect_exit 75 "$gpu" --slice 60 --only steps --networks resnet50 --batches 32 cut
rm "$room/bin/timeout"
! grep -q check_lenet5 cut/done 2> /dev/null || fail "a stage that was cut is not done"
expect_exit 0 "$gpu" --slice 600 --only steps --networks resnet50 --batches 32 cut
expect_line cut/done check_lenet5
echo good
