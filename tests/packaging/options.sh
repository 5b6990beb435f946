#!/bin/bash
# options.sh SOURCE COMPILER: an option that is ON while its library is missing ends the configuration with what to install.
set -euo pipefail
source=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "options.sh: $1" >&2; cat "$work/log" >&2; exit 1; }
for pair in GUI:Qt6 ONNX:ONNX MPI:MPI BENCH:benchmark SQLITE:SQLite3 TESTS:GTest PYTHON:pybind11; do
    option=${pair%:*} package=${pair#*:}
    rm -rf "$work/build"
    if cmake -S "$source" -B "$work/build" -DCMAKE_CXX_COMPILER="$compiler" -DREHEARSE_CUDA=OFF "-DREHEARSE_$option=ON" \
        "-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON" >"$work/log" 2>&1; then
        fail "REHEARSE_$option=ON without $package is accepted"
    fi
    # CMake breaks its messages into lines where it likes.
    tr -s '\n ' ' ' <"$work/log" | grep -q "REHEARSE_$option=ON, but .* was not found" || fail "REHEARSE_$option: the message is another"
    echo "REHEARSE_$option=ON without $package: refused"
done
