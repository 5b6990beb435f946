#!/bin/bash
# Installs the packages that are missing (as root, or with sudo) and builds a preset, or only some of its targets:
# setup.sh [release|dev|asan|...] [TARGET...]; REHEARSE_CONFIGURE holds options for cmake
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true

missing=()
for package in $(grep -v '^#' scripts/packages.txt); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: installing ${missing[*]}" >&2
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null || { echo "setup: need root or sudo to install: ${missing[*]}" >&2; exit 3; }
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -q >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
fi

cmake --preset "$preset" ${REHEARSE_CONFIGURE:-} >&2
cmake --build --preset "$preset" -j "$(nproc)" ${1:+--target "$@"} >&2
