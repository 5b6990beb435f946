#!/bin/bash
# Runs the fuzz targets (fuzz/README.md) one after the other, each with 2 GB of memory and 10 s an input at most, and
# prints a line a target: executions, edges covered, inputs that it kept, and what it found.
#
#   scripts/fuzz.sh [MINUTES] [TARGET...]     MINUTES of all targets together (10); targets: all that are built
#     --build-only                            builds the targets (preset fuzz: clang-16, libclang-rt-16-dev) and ends
#
# Inputs that reach something new are kept in build/fuzz/corpus/TARGET, what a target fell over in build/fuzz/found/TARGET:
# replay it with build/fuzz/fuzz/fuzz_TARGET FILE, mend it, and put it into tests/data/fuzz/TARGET. Exit code 1 where there
# was a finding, 2 for wrong arguments, 3 where clang is missing.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
die() { echo "fuzz.sh: $2" >&2; exit "$1"; }
minutes=10 build_only=no targets=()
while [ $# -gt 0 ]; do
    case "$1" in
        --build-only) build_only=yes ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        -*) die 2 "$1: unknown; --help lists the options" ;;
        [0-9]*) [[ "$1" =~ ^[1-9][0-9]{0,4}$ ]] || die 2 "$1: whole minutes, from 1 to 99999"; minutes=$1 ;;
        *) [ -f "fuzz/$1.cpp" ] || die 2 "$1: no target; there are $(sed -n 's/.*rehearse_fuzz(\([a-z]*\) .*/\1/p' fuzz/CMakeLists.txt | xargs)"
           targets+=("$1") ;;
    esac
    shift
done
command -v clang++-16 > /dev/null || die 3 "clang++-16 is missing: apt-get install clang-16 libclang-rt-16-dev"
[ -f build/fuzz/build.ninja ] || cmake --preset fuzz > build.log.fuzz 2>&1 || { cat build.log.fuzz >&2; exit 1; }
rm -f build.log.fuzz
wanted=()
for target in ${targets[@]+"${targets[@]}"}; do wanted+=("fuzz_$target"); done
cmake --build build/fuzz --target "${wanted[@]:-fuzz/all}" > build/fuzz/build.log 2>&1 || { tail -30 build/fuzz/build.log >&2; exit 1; }
[ $build_only = no ] || exit 0
if [ ${#targets[@]} -eq 0 ]; then
    for program in build/fuzz/fuzz/fuzz_*; do [ -x "$program" ] && targets+=("${program##*fuzz_}"); done
fi
seconds=$((minutes * 60 / ${#targets[@]}))
[ $seconds -ge 1 ] || seconds=1
dictionary_of() {
    case "$1" in
        machine | framework | experiment | request | rules) echo toml ;;
        boards | jobs | published | tables) echo csv ;;
        chrome | config | recording | samples) echo json ;;
        plan | problem | topology) echo "$1" ;;
    esac
}
findings=0
printf '%-12s %14s %9s %8s %9s\n' target executions coverage corpus findings
for target in "${targets[@]}"; do
    corpus=build/fuzz/corpus/$target found=build/fuzz/found/$target log=build/fuzz/$target.log
    mkdir -p "$corpus" "$found"
    # Its entropic schedule goes through all features of all inputs at each execution: two thirds of the time of `onnx`.
    options=(-rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -entropic=0 -reload=0 -artifact_prefix="$found/")
    # No longer than a seed that is a whole file: those of 30 kB and more are one long word, and each input would be as long.
    longest=$(find "tests/data/fuzz/$target" -type f -size -24k -printf '%s\n' | sort -n | tail -1)
    [ "$target" = onnx ] || options+=(-max_len=$((longest > 256 ? longest : 256)))
    dictionary=$(dictionary_of "$target")
    [ -z "$dictionary" ] || options+=(-dict="fuzz/dictionaries/$dictionary.dict")
    if [ "$target" = onnx ] && [ ! -f "$corpus/test_abs" ]; then fuzz/onnx_seeds.py "$corpus" >> build/fuzz/build.log 2>&1; fi
    before=$(find "$found" -type f | wc -l)
    end=$((SECONDS + seconds))
    : > "$log"
    # A finding ends the process: another goes on while there is time. (libFuzzer's forks do so by themselves, but begin
    # anew every few seconds, and read the whole corpus each time.)
    while left=$((end - SECONDS)) began=$SECONDS && [ $left -gt 0 ]; do
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=0:malloc_context_size=1:quarantine_size_mb=16:max_uar_stack_size_log=16 "build/fuzz/fuzz/fuzz_$target" "${options[@]}" \
            -max_total_time="$left" "$corpus" "tests/data/fuzz/$target" >> "$log" 2>&1 && break
        [ $SECONDS -gt $((began + 1)) ] || break # over a seed: it would be the next one's, too
    done
    new=$(($(find "$found" -type f | wc -l) - before))
    findings=$((findings + new))
    # At the end of each process: "stat::number_of_executed_units: 456"; on its way: "#123 NEW cov: 45 ft: 67 corp: 8/1Kb ..."
    printf '%-12s %14s %9s %8s %9s\n' "$target" "$(awk '/^stat::number_of_executed_units:/ { sum += $2 } END { print sum + 0 }' "$log")" \
        "$(sed -n 's/^#[0-9]*.* cov: \([0-9]*\).*/\1/p' "$log" | sort -n | tail -1)" "$(find "$corpus" -type f | wc -l)" "$new"
done
[ $findings -eq 0 ] || die 1 "$findings findings in build/fuzz/found"
