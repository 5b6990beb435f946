#!/bin/bash
# The main job, end to end: predict ResNet-50 on Summit, then hold a prediction for this host to a real run on it.
# Everything it makes lies in build/demo, its results in build/demo/results; nothing else is touched.
set -euo pipefail
cd "$(dirname "$0")/.."
# Nothing is built for GPUs where there is none, whatever toolkit is installed.
[ -e /dev/nvidia0 ] || export REHEARSE_CONFIGURE="-DREHEARSE_CUDA=OFF"
scripts/setup.sh demo rehearse

rehearse=build/demo/cli/rehearse
out=build/demo/results
mkdir -p "$out"
export REHEARSE_HOME="$out"  # where the measured this-host is kept
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() { mpirun --oversubscribe -n 2 "$@"; }
say() { printf '\n== %s\n' "$*"; }

say "1. ResNet-50 on Summit, predicted from one node to the whole machine"
"$rehearse" predict --model resnet50 --machine summit --devices 6,48,384,3072,27648 --plan data --batch 32 \
    --precision mixed --explain

say "2. This host: measured, so that it can be predicted"
ranks "$rehearse" calibrate --quick --model resnet32 --batch 32 --budget 15 --format csv --output "$out/samples.csv" --force ||
    [ $? -eq 1 ]  # in doubt, since the host is busy with other things: it says so, and so will what follows

say "3. ResNet-32 on 2 ranks: predicted, then trained for real with the same schedule"
"$rehearse" predict --model resnet32 --machine this-host --devices 2 --plan data --batch 32 \
    --trace "$out/predicted.json" --force
ranks "$rehearse" run --model resnet32 --plan data --batch 32 --steps 20 --trace "$out/measured.json" --force

say "4. Predicted against measured"
"$rehearse" compare "$out/predicted.json" "$out/measured.json" --fail-over 20%
"$rehearse" export "$out/predicted.json" "$out/measured.json" --to perfetto "$out/both.pftrace" --force
echo "Both timelines on one axis: open $out/both.pftrace at https://ui.perfetto.dev"
