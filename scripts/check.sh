#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What everybody runs before a commit.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'TEXT'
scripts/check.sh [--base REF] [--preset NAME] [PART...]

PART      format   clang-format would change nothing in the changed files
          layers   no folder includes what it may not, no class is too large (scripts/check_layers.py, check_classes.py)
          build    cmake --preset NAME and its build
          tidy     clang-tidy is silent on the changed files (needs a configured build)
          test     ctest --preset NAME
          Without a PART: all of them, in this order, up to the first that fails.
--base    changed means: since the merge base with REF (default origin/main, else main), with what is not committed
--preset  dev (default), asan (libraries), asan-all, tsan, release
TEXT
}

base=
preset=dev
parts=()
while (($#)); do
    case $1 in
        --base) base=${2:?--base needs a git reference}; shift 2 ;;
        --preset) preset=${2:?--preset needs a name}; shift 2 ;;
        -h|--help) usage; exit 0 ;;
        format|layers|build|tidy|test) parts+=("$1"); shift ;;
        *) echo "check.sh: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
    esac
done
((${#parts[@]})) || parts=(format layers build tidy test)

if [[ -z $base ]]; then
    base=main
    git rev-parse --verify --quiet origin/main >/dev/null && base=origin/main
fi
# Functions below run under ||, where bash ignores -e: each returns the status of what counts.
since=$(git merge-base HEAD "$base") || { echo "check.sh: no merge base with '$base'; give one with --base" >&2; exit 2; }

# Changed since the base, committed or not, and still there.
mapfile -t changed < <({ git diff --name-only --diff-filter=d "$since" -- '*.cpp' '*.hpp'
                         git ls-files --others --exclude-standard -- '*.cpp' '*.hpp'; } | sort -u)

need() { command -v "$1" >/dev/null || { echo "check.sh: $1 is missing; install it with: apt-get install $2" >&2; exit 3; }; }

format() {
    need clang-format clang-format
    ((${#changed[@]})) || return 0
    clang-format --dry-run --Werror "${changed[@]}"
}

layers() { python3 scripts/check_layers.py && python3 scripts/check_classes.py; }

build() {
    need cmake cmake
    cmake --preset "$preset" && cmake --build --preset "$preset"
}

# Only sources that this configuration compiles; headers are looked at through them.
tidy() {
    need clang-tidy clang-tidy
    local database=build/$preset/compile_commands.json sources=() file
    [[ -f $database ]] || { echo "check.sh: no $database; run the part 'build' first" >&2; return 2; }
    for file in "${changed[@]}"; do
        [[ $file == *.cpp ]] && grep -qF "\"file\": \"$PWD/$file\"" "$database" && sources+=("$file")
    done
    ((${#sources[@]})) || return 0
    printf '%s\0' "${sources[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p "build/$preset" --quiet
}

run_tests() { ctest --preset "$preset" -j "$(nproc)"; }

for part in "${parts[@]}"; do
    echo "== $part" >&2
    if [[ $part == test ]]; then part=run_tests; fi
    "$part" || { echo "check.sh: $part failed" >&2; exit 1; }
done
echo "check.sh: good" >&2
