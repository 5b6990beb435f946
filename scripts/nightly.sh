#!/bin/bash
# Runs what CI has no time for, one stage after the other, and says of each how it ended and how long it took. Hours on two
# cores.
#
#   scripts/nightly.sh [STAGE...]      all stages, or those named
#     --list                           names the stages, a line each, and ends
#     --minutes N                      of fuzzing (default 60)
#     --plans N                        random plans that are simulated (default 1000000)
#     --without NAME                   in stage options only this option, as MPI (may be repeated)
#     --whole                          in stage options each build from nothing, with all its tests: 20 minutes an option
#
# Each stage's output is in build/nightly/STAGE.log. Exit code 1 where a stage failed, 2 for wrong arguments.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
minutes=60 plans=1000000 chosen=() without=() whole=no

stages=(
    "long      the dev build's tests labelled long"
    "plans     random plans: schedules, both modes, memory; gradients on 2 and 4 ranks"
    "faults    each call to the system fails once, some of MPI do, signals come at any moment, values of JSON change type"
    "kills     ranks of training are killed at 200 moments, a host's link comes and goes, ten thousand bytes of checkpoints change"
    "asan      address and undefined-behaviour sanitizers, programs included"
    "tsan      thread sanitizer: the programs' tests that run threads"
    "clang     built by clang 16 without warnings, and its tests"
    "options   the build with each option off by itself, and the tests of what it changes"
    "valgrind  memory errors of libraries without MPI, uninitialised reads too"
    "soak      predictions, a training, simulated plans, a search and the window, each in one process: memory stays"
    "fuzz      libFuzzer on every reader"
)

die() { echo "nightly.sh: $2" >&2; exit "$1"; }
number() { [[ "$2" =~ ^[1-9][0-9]{0,9}$ ]] || die 2 "$1 $2: a whole number from 1"; }
while [ $# -gt 0 ]; do
    case "$1" in
        --list) printf '%s\n' "${stages[@]}"; exit 0 ;;
        --minutes) number "$1" "${2:-}"; minutes=$2; shift ;;
        --plans) number "$1" "${2:-}"; plans=$2; shift ;;
        --without) grep -q "^ *rehearse_option(${2:-?} \|^option(REHEARSE_${2:-?} " cmake/RehearseDependencies.cmake ||
                       die 2 "--without ${2:-}: no option; cmake/RehearseDependencies.cmake has them"
                   without+=("$2"); shift ;;
        --whole) whole=yes ;;
        -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        *) printf '%s\n' "${stages[@]}" | grep -q "^$1 " || die 2 "$1: no stage; --list names them"
           chosen+=("$1") ;;
    esac
    shift
done
if [ ${#chosen[@]} -eq 0 ]; then
    for stage in "${stages[@]}"; do chosen+=("${stage%% *}"); done
fi

build() { scripts/setup.sh "$@"; }
tests() { ctest --test-dir "build/$1" -j "$(nproc)" --output-on-failure --no-tests=error "${@:2}"; }

run_long() { build dev && tests dev -L long; }

run_plans() {
    build dev || return
    REHEARSE_PLANS=$plans build/dev/tests/sim/test_sim_random_plans || return
    for ranks in 2 4; do
        REHEARSE_PLANS=$((plans / 100 + 1)) OMP_NUM_THREADS=1 mpirun --oversubscribe -n $ranks \
            build/dev/tests/run/test_run_random_plans || return
    done
}

run_faults() {
    build dev && python3 tests/faults/check_faults.py build/dev/cli/rehearse build/dev/tests/faults/faults.so &&
        python3 tests/faults/mutated_json.py build/dev/cli/rehearse 1000 &&
        python3 tests/faults/mpi_faults.py build/dev/cli/rehearse build/dev/tests/faults/mpi_faults.so 50 &&
        python3 tests/faults/signals.py build/dev/cli/rehearse 1000
}

run_kills() {
    build dev && python3 tests/faults/kills.py build/dev/cli/rehearse 25 &&
        { python3 tests/faults/links.py build/dev/cli/rehearse scripts/netlab.sh 20 || [ $? -eq 77 ]; } &&
        REHEARSE_BYTES=10000 mpirun --oversubscribe -n 2 build/dev/tests/run/test_run_damaged_checkpoint
}

run_asan() {
    # Open MPI and its daemons keep memory until the process ends: leaks are looked for in the rest.
    build asan-all && ASAN_OPTIONS=detect_leaks=0 tests asan-all -LE "long|docs|torch" &&
        tests asan-all -LE "long|docs|torch|mpi" -R '^(core|match|prices|models|schedule|sim|trace|picture|search)/'
}

run_tsan() {
    build tsan && TSAN_OPTIONS="suppressions=$PWD/tests/data/tsan.supp history_size=7 ignore_noninstrumented_modules=1" \
        tests tsan -R '^(run/|kernels/|gui/|search/|trace/|cli/(search|interrupt))' -LE "long|docs|torch"
}

run_clang() { build clang && tests clang -LE "long|docs|torch"; }

# Builds in $1 what is missing there, and runs the tests of the folders whose programs are new since $2, without --whole
# that is, and those of the commands, which say what is off.
build_and_test() {
    local changed
    cmake --build "$1" -- -k 0 || return
    [ -f "$1/CTestTestfile.cmake" ] && [ -d "$1/tests" ] || return 0  # without TESTS there are none
    changed=$(find "$1/tests" -newer "$2" -type f -perm -u+x -name 'test_*' -printf '%P\n' | sed 's|/.*||' | sort -u | paste -s -d '|')
    ctest --test-dir "$1" -j "$(nproc)" --output-on-failure -R "^(cli${changed:+|$changed})/" -LE "long|docs|torch"
}

# Each option changes what is compiled of some folders only: it is switched off in a copy of one build, of the same name, in
# which ninja builds what its change has touched. A source that is made by what is off still lies there; --whole has none.
run_options() {
    local option folder=build/nightly/options kept=build/nightly/options.all broken=()
    [ ${#without[@]} -gt 0 ] ||
        mapfile -t without < <(sed -n 's/^ *rehearse_option(\([A-Z0-9]*\).*/\1/p' cmake/RehearseDependencies.cmake; echo CLI)
    rm -rf "$folder"
    if [ $whole = no ]; then
        [ ! -d "$kept" ] || mv "$kept" "$folder"  # of the night before
        cmake --preset dev -B "$folder" && cmake --build "$folder" && mv "$folder" "$kept" || return
    fi
    for option in "${without[@]}"; do
        echo "== REHEARSE_$option=OFF"
        rm -rf "$folder"
        [ $whole = yes ] || cp -a --reflink=auto "$kept" "$folder" || return
        touch build/nightly/options.begin
        cmake --preset dev -B "$folder" "-DREHEARSE_$option=OFF" && build_and_test "$folder" build/nightly/options.begin || broken+=("$option")
    done
    rm -rf "$folder"
    [ ${#broken[@]} -eq 0 ] || { echo "does not build or fails its tests without: ${broken[*]}"; return 1; }
}

run_valgrind() {
    command -v valgrind > /dev/null || { echo "valgrind is missing: apt-get install valgrind"; return 1; }
    build dev || return
    local program broken=()
    # Not picture/test_picture_cairo: fontconfig keeps its patterns by offsets, which valgrind takes for lost.
    for program in build/dev/tests/{core,match,prices,schedule,study,trace}/test_* \
        build/dev/tests/{picture/test_picture,report/test_report_document}; do
        if ! [ -x "$program" ] || ! [ -f "$program" ]; then continue; fi
        echo "== $program"
        valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$program" > build/nightly/valgrind.out ||
            { grep -F '[  FAILED  ]' build/nightly/valgrind.out; broken+=("$program"); }
    done
    [ ${#broken[@]} -eq 0 ] || { echo "memory errors or failed tests: ${broken[*]}"; return 1; }
}

run_soak() { build dev && python3 tests/faults/soak.py build/dev; }

run_fuzz() { scripts/fuzz.sh "$minutes"; }

mkdir -p build/nightly
failed=0
printf '%-10s %-8s %8s\n' stage result minutes
for stage in "${chosen[@]}"; do
    begin=$SECONDS
    if "run_$stage" > "build/nightly/$stage.log" 2>&1; then result=passed; else result=FAILED failed=1; fi
    printf '%-10s %-8s %8s\n' "$stage" "$result" "$(((SECONDS - begin + 30) / 60))"
done
[ $failed -eq 0 ] || die 1 "see build/nightly/STAGE.log"
