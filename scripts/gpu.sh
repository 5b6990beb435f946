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
#     --batches n,m      of all of these (32,256); of BERT a quarter of each, so that it fits 80 GB
#     --types t,u        of the benches (f16,f32,bf16)
#     --only part,part   build, roofs, steps, kernels, test, ranks (all, in this order)
#     --stages           says which stages there are, in their order, and which are done; starts nothing
#     --layouts x,y      of the convolutions' benches (nhwc,nchw)
#     --architecture NN  what is compiled for (what the GPU says; 90 becomes 90a)
#     --build-only       also where no GPU is: builds, and runs the tests that play the GPU on the host
#   scripts/gpu.sh --bundle FOLDER         where no GPU is: builds, and puts program, tests, their libraries and this script
#                                          into FOLDER, for a machine with a GPU that has none of the packages: there
#                                          FOLDER/gpu.sh RESULTS, with the same options
#   scripts/gpu.sh --compare FOLDER        on a machine with SimGrid: predictions for the calibrated GPU against what was
#                                          measured there, REHEARSE=build/release/cli/rehearse unless it says otherwise
#
# What is done is noted in FOLDER/done and not done again, failed or not: take its line out to try it again. Needs the CUDA toolkit and the packages of scripts/packages.txt;
# SimGrid, Qt and oneDNN are not needed, training needs an MPI; a bundle needs the driver and a libc of 2.36 or later.
# cuDNN 9, cuBLAS, cuFFT and NCCL are used where the loader finds them, or in the toolkit or python3's packages
# (FOLDER/libraries.txt says which). Exit code 3 where there is no GPU, 1 where a stage failed.
set -uo pipefail
from=$PWD here=$(cd "$(dirname "$0")" && pwd)
bundled=no
[ -x "$here/bin/rehearse" ] && bundled=yes
[ $bundled = yes ] || cd "$here/.." || exit
parts=build,roofs,steps,kernels,test,ranks
networks=resnet50,vgg16,bert-large batches=32,256 types=f16,f32,bf16 layouts=nhwc,nchw only=$parts
longest=600  # seconds of a stage
architecture="" build_only=no stages=no compare="" bundle="" out="" slice=0
die() { echo "gpu.sh: $2" >&2; exit "$1"; }
while [ $# -gt 0 ]; do
    case "$1" in
        --slice | --networks | --batches | --types | --layouts | --only | --architecture | --compare | --bundle)
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
for layout in ${layouts//,/ }; do
    [[ "$layout" = nchw || "$layout" = nhwc ]] || die 2 "--layouts $layout: nhwc, nchw or both"
done
if [ -n "$bundle" ]; then
    [ $bundled = no ] || die 2 "--bundle: this is a bundle"
    [[ "$bundle" = /* ]] || bundle=$from/$bundle
    [ ! -e "$bundle" ] || [ -z "$(ls -A "$bundle")" ] || die 2 "--bundle $bundle: is there and not empty"
    build_only=yes only=build,test out=build/gpu-bundle-log
    rm -f $out/done $out/failed.txt  # what was built may have changed since
fi
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

# Shared objects of what is given, without libc and the loader, which are the machine's own.
libraries_of() {
    ldd "$@" 2> /dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
        grep -Ev '/(libc|libm|libdl|librt|libpthread|libresolv|libutil|ld-linux[^/]*)\.so'
}
# Program and tests into bin, what they load into lib; Open MPI with what one machine's ranks need of its plugins.
make_bundle() {
    local at=$1 plugins
    mkdir -p "$at/bin" "$at/lib" "$at/mpi" || return
    cp "$here/gpu.sh" "$at/" && cp "$rehearse" "$at/bin/" || return
    for each in $tests; do cp "$(find $build/tests -name "$each" -type f)" "$at/bin/" || return; done
    if [ $mpi = ON ]; then
        plugins=$(ompi_info --parsable --path pkglibdir 2> /dev/null | cut -d: -f3)
        [ -d "$plugins" ] || { echo "no Open MPI, whose plugins go along: a bundle has it or none" >&2; return 1; }
        cp "$(command -v mpirun)" "$(command -v orted)" "$at/bin/" || return
        cp "$plugins"/mca_*.so "$at/mpi/" || return
        rm -f "$at"/mpi/mca_*{ucx,ofi,openib,psm,psm2,uct,slurm,gridengine,flux,jsm,romio*,ompio}.so "$at"/mpi/mca_fcoll_*.so
        plugins=$(find -L "$(dirname "$(readlink -f "$(libraries_of "$at"/mpi/mca_pmix_ext*.so | grep libpmix)")")" \
            -path '*pmix*/mca_*.so' 2> /dev/null)
        # shellcheck disable=SC2086
        [ -z "$plugins" ] || { mkdir -p "$at/pmix" && cp $plugins "$at/pmix/"; } || return
    fi
    # shellcheck disable=SC2046
    cp -L $(libraries_of "$at"/bin/* $(find "$at/mpi" "$at/pmix" -name '*.so' 2> /dev/null)) "$at/lib/" || return
    strip "$at"/bin/* 2> /dev/null
    echo "gpu.sh: $(du -sh "$at" | cut -f1) in $at: there $at/gpu.sh RESULTS"
}
# Where the libraries that are opened when a GPU is first used are not known to the loader: the toolkit's, python3's.
find_libraries() {
    local name folder folders
    folders="${CUDA_HOME:-/usr/local/cuda}/lib64 ${CUDA_HOME:-/usr/local/cuda}/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu"
    folders="$folders $(python3 -c 'import glob, sysconfig
print(*sorted(glob.glob(sysconfig.get_paths()["purelib"] + "/nvidia/*/lib")))' 2> /dev/null)"
    for name in libcudnn.so.9 libcublas.so.13 libcublasLt.so.13 libcufft.so.12 libnccl.so.2; do
        ldconfig -p 2> /dev/null | grep -q " *$name " && { echo "$name: the loader's"; continue; }
        for folder in $folders; do
            [ -e "$folder/$name" ] || continue
            echo "$name: $folder"
            [[ ":${LD_LIBRARY_PATH:-}:" == *":$folder:"* ]] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}:$folder"
            continue 2
        done
        echo "$name: not found"
    done > "$out/libraries.txt"
}

out=${out:-build/gpu-results}
[ $bundled = no ] || [[ "$out" = /* ]] || out=$from/$out
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
build=build/gpu
rehearse=$build/cli/rehearse
if [ $bundled = yes ]; then
    rehearse=$here/bin/rehearse
    export PATH=$here/bin:$PATH LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export OMPI_MCA_mca_base_component_path=$here/mpi PMIX_MCA_mca_base_component_path=$here/pmix OPAL_PREFIX=$here
fi
mpi=OFF
command -v mpirun > /dev/null && mpi=ON
tests="test_kernels_cuda test_kernels_cuda_layers test_kernels_cudnn test_bench_device"
[ $mpi = ON ] && tests="$tests test_run_ranks"

if [ $bundled = no ] && wanted build; then
    part configure 120 cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
        -DCMAKE_CUDA_ARCHITECTURES="$architecture" -DREHEARSE_CUDA=ON -DREHEARSE_SIM=OFF -DREHEARSE_GUI=OFF \
        -DREHEARSE_PYTHON=OFF -DREHEARSE_ONEDNN=OFF -DREHEARSE_MPI=$mpi
    part build 600 cmake --build $build -j "$(nproc)" --target rehearse
fi
[ -x $rehearse ] || [ $stages = yes ] || die 3 "nothing was built: see $out/configure.err and $out/build.txt"
[ $stages = yes ] || find_libraries
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
batch_of() { if [[ "$1" = bert* ]]; then echo $((($2 + 3) / 4)); else echo "$2"; fi; }  # batch_of NETWORK BATCH
train() {  # train NETWORK PRECISION BATCH STEPS
    local name=train_$1_$2_$3
    part "$name" 240 $rehearse run --device cuda --model "$1" --batch "$3" --steps "$4" --precision "$2" --format json \
        --trace "$out/$name.trace.json" --force
}
if [ $build_only = no ]; then
    if wanted roofs; then part roofs 180 $rehearse bench peak --device cuda --format json; fi
    # A step as it was and all that its prediction needs: each pair by itself says something.
    if wanted steps; then
        [ $mpi = ON ] || [ $stages = yes ] || skipped train "no mpirun: run needs an MPI"
        [ $mpi = ON ] && part check_lenet5 60 $rehearse run --device cuda --model lenet5 --batch 32 --steps 3 --check-gradients
        for batch in ${batches//,/ }; do
            for network in ${networks//,/ }; do
                count=$(batch_of "$network" "$batch")
                [ $mpi = ON ] && train "$network" mixed "$count" 10
                # The same with its kernels started as graphs: what the launches cost.
                [ $mpi = ON ] && part "graphs_${network}_mixed_$count" 120 $rehearse run --device cuda --graphs --model "$network" \
                    --batch "$count" --steps 10 --precision mixed --format json
                part "calibrate_${network}_$count" 540 $rehearse calibrate --device cuda --model "$network" --batch "$count" \
                    --machine-out "$out/gpu_${network}_$count.toml" --format json --force
                [ $mpi = ON ] && train "$network" fp32 "$count" 10
                # f32 whose products are rounded to TF32.
                [ $mpi = ON ] && part "tf32_${network}_$count" 120 $rehearse run --device cuda --algorithm tensor-tf32 \
                    --model "$network" --batch "$count" --steps 10 --precision fp32 --format json
            done
        done
    fi
    # Each network's convolutions or products, by every algorithm; of convolutions how tensors lie, too.
    bench() {  # bench KIND NETWORK BATCH TYPE LAYOUT
        local name=kernels_$2_$3_$4_$5
        part "$name" 590 $rehearse bench "$1" --device cuda --suite "$2" --batch "$3" --type "$4" --layout "$5" --rounds 5 \
            --format csv --out "$out/$name.json" --force
    }
    if wanted kernels; then
        for type in ${types//,/ }; do
            for batch in ${batches//,/ }; do
                for network in ${networks//,/ }; do
                    count=$(batch_of "$network" "$batch")
                    [[ "$network" != bert* ]] || { bench gemm "$network" "$count" "$type" nchw; continue; }
                    for layout in ${layouts//,/ }; do
                        [ "$type$layout" = f32nhwc ] || bench conv "$network" "$batch" "$type" "$layout"
                    done
                done
            done
        done
        # Our normalizations and cuDNN's, of ResNet-50 and BERT-large.
        norms=""
        for shape in batchnorm:n32c64h112w112 batchnorm:n32c256h56w56 batchnorm:n32c1024h14w14 layernorm:n32r128c1024; do
            norms="$norms $shape:f16:forward $shape:f16:backward_data"
        done
        for layout in ${layouts//,/ }; do
            # shellcheck disable=SC2086
            part "kernels_norms_$layout" 120 $rehearse bench layer --device cuda --layout "$layout" --format csv $norms
        done
        part kernels_attention 120 $rehearse bench attention --device cuda --suite bert-large --batch 8 --type f16 --format csv
    fi
fi
if wanted test; then
    # shellcheck disable=SC2086
    [ $bundled = yes ] || part build_tests 600 cmake --build $build -j "$(nproc)" --target $tests
    filter='*Gpu*'
    [ $build_only = yes ] && filter='-*Gpu*'
    at() { if [ $bundled = yes ]; then echo "$here/bin/$2"; else echo "$build/tests/$1/$2"; fi; }
    part test_sums 180 "$(at kernels test_kernels_cuda)" --gtest_filter="$filter"
    part test_layers 180 "$(at kernels test_kernels_cuda_layers)" --gtest_filter="$filter"
    part test_cudnn 180 "$(at kernels test_kernels_cudnn)"
    part test_bench 60 "$(at bench test_bench_device)"
    [ $mpi = ON ] && part test_run 120 "$(at run test_run_ranks)" --gtest_filter='Device.*:Learners.*'
fi
if [ $build_only = no ] && [ $mpi = ON ] && wanted ranks; then
    part two_ranks 120 mpirun --oversubscribe -n 2 $rehearse run --device cuda --model resnet50 --batch 16 --steps 5
    part two_ranks_checked 60 mpirun --oversubscribe -n 2 $rehearse run --device cuda --model lenet5 --batch 16 \
        --steps 3 --check-gradients
    part four_learners 120 $rehearse run --device cuda --model resnet32 --batch 16 --steps 20 --learners 4
    part one_learner 120 $rehearse run --device cuda --model resnet32 --batch 16 --steps 20
fi
[ $stages = no ] || exit 0
if [ -n "$bundle" ]; then
    [ ! -e "$out/failed.txt" ] || die 1 "not bundled: $(cat "$out/failed.txt")"
    make_bundle "$bundle" || die 1 "$bundle: not complete"
    exit 0
fi
[ $build_only = no ] || skipped "everything else" "--build-only: no GPU was asked for"
ls "$out"
[ -e "$out/skipped.txt" ] && cat "$out/skipped.txt" >&2
[ ! -e "$out/failed.txt" ] || { cat "$out/failed.txt" >&2; exit 1; }
echo "gpu.sh: all done: see $out"
