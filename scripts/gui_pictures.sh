#!/bin/bash
# Remakes docs/pictures/gui-*.png: every screen of rehearse-gui on real predictions and measurements, without a display.
#   scripts/gui_pictures.sh [BUILD]          all of it; a minute is measured on this host
#   scripts/gui_pictures.sh BUILD draw       only the pictures, of the files that are there from before
#   scripts/gui_pictures.sh BUILD sizes      the same files, each screen at 800x600, 1280x800 and twice that, to be looked at: build/gui-sizes
# ImageMagick, where there is one, makes the files small.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
rehearse=$build/cli/rehearse gui=$build/gui/rehearse-gui
files=build/gui-pictures pictures=docs/pictures
mkdir -p "$files"
export REHEARSE_HOME="$files" REHEARSE=$(realpath "$rehearse") QT_QPA_PLATFORM=offscreen QT_SCALE_FACTOR=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
ranks() { mpirun --oversubscribe -n 2 "$@"; }

predict() {
    local summit=(--machine summit --plan data --batch 32 --precision mixed --devices 6,48,384,1536,6144,27648)
    local pipe=(--model bert-large --machine summit --devices 12 --plan pipe=4:schedule=1f1b:microbatches=12,data=3
        --batch 12 --precision mixed --optimizer adam)
    "$rehearse" predict --model resnet50 "${summit[@]}" --explain --memory --dataset 1281167 --epochs 90 \
        --format json --output "$files/summit.json" --force
    "$rehearse" predict --model vgg16 "${summit[@]}" --format json --output "$files/vgg16.json" --force
    "$rehearse" predict --model resnet50 --machine summit --devices 48 --plan data --batch 32 --precision mixed \
        --mode exact --trace "$files/summit48.pftrace" --force
    "$rehearse" predict "${pipe[@]}" --mode exact --memory --format json --output "$files/pipe.json" \
        --trace "$files/pipe.pftrace" --force
}

measure() {
    ranks "$rehearse" calibrate --quick --model resnet32 --batch 32 --budget 15 --out "$files/calibration.json" --force || [ $? -eq 1 ]
    "$rehearse" predict --model resnet32 --machine this-host --devices 2 --plan data --batch 32 \
        --trace "$files/predicted.json" --force
    ranks "$rehearse" run --model resnet32 --plan data --batch 32 --steps 20 --trace "$files/measured.json" --force
    "$rehearse" bench conv conv2d:n4c64h56w56k64r3s3:pad1:stride1:f32:forward \
        conv2d:n4c128h28w28k128r3s3:pad1:stride1:f32:forward conv2d:n4c256h14w14k256r3s3:pad1:stride1:f32:forward \
        conv2d:n4c256h56w56k64r1s1:pad0:stride1:f32:forward --budget 12 --out "$files/bench.json" --force
    ranks "$rehearse" bench allreduce --min 1KiB --max 16MiB --out "$files/collectives.json" --force
}

# draw NAME VIEW FILES... -- OPTIONS...
draw() {
    local out=$pictures/gui-$1.png words=(--view "$2")
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do words+=(--open "$files/$1"); shift; done
    "$gui" "${words[@]}" "${@:2}" --size "$size" --screenshot "$out" --exit
    if command -v convert >/dev/null; then convert "$out" +dither -colors 200 "PNG8:$out" || echo "left large: $out" >&2; fi
    echo "drawn: $out"
}

draw_all() {
    draw start overview
    draw overview overview summit.json
    draw timeline timeline summit48.pftrace
    draw lanes timeline pipe.pftrace -- --find "send:receive" --keys OFSSSSSSS --theme dark
    draw path timeline pipe.pftrace -- --keys C
    draw editor editor
    draw scaling scaling summit.json vgg16.json
    draw pipeline pipeline pipe.pftrace
    draw compare compare predicted.json measured.json
    draw differences compare predicted.json measured.json -- --tab Difference
    draw topology topology summit48.pftrace
    draw traffic topology summit48.pftrace -- --tab Traffic
    draw beside timeline summit48.pftrace -- --beside topology --theme dark
    draw memory memory pipe.json pipe.pftrace -- --theme dark
    draw kernels kernels bench.json
    draw collectives kernels collectives.json
    draw residuals kernels calibration.json -- --tab Prices
    draw runs editor -- --view runs
}

size=1280x800
if [ "${2:-all}" = all ]; then predict; measure; fi
if [ "${2:-all}" != sizes ]; then draw_all; exit; fi
for size in 800x600 1280x800 1280x800@2; do
    export QT_SCALE_FACTOR=1
    if [ "${size#*@}" = 2 ]; then export QT_SCALE_FACTOR=2; fi
    pictures=build/gui-sizes/$size size=${size%@*}
    mkdir -p "$pictures"
    draw_all
done
