#!/bin/bash
# Installs, builds and passes the tests: the default set on the dev build (warnings are errors), then those of the
# libraries under the address and undefined-behaviour sanitizers (the programs too: preset asan-all). test.sh --long adds the tests labelled long.
set -euo pipefail
cd "$(dirname "$0")/.."
exclude=(-LE long)
[ "${1:-}" = --long ] && exclude=()
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

scripts/setup.sh dev
ctest --test-dir build/dev -j "$(nproc)" --output-on-failure --no-tests=error "${exclude[@]}"

scripts/setup.sh asan
# Open MPI and its daemons keep memory until the process ends; leaks are looked for in our tests without MPI.
ASAN_OPTIONS=detect_leaks=0 ctest --test-dir build/asan -j "$(nproc)" --output-on-failure --no-tests=error "${exclude[@]}"
