#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hosts are up while a command runs, messages between them take the time that the rate says, and nothing is left over,
# whether the command succeeds or fails. Skipped where netlab.sh says that it cannot.
set -euo pipefail
rehearse=$1
netlab=$(dirname "$0")/../../scripts/netlab.sh
lab=t$$

fail() { echo "FAILED: $*"; exit 1; }
expect_nothing_left() {
    ! ip netns list | grep -q "^$lab-" || fail "namespaces are left"
    ! compgen -G "/etc/netns/$lab-*" > /dev/null || fail "hosts files are left"
    [[ ! -e ${TMPDIR:-/tmp}/netlab-$lab ]] || fail "the folder is left"
}
expect_exit() {
    local code=0
    "${@:2}" > /dev/null 2>&1 || code=$?
    [[ $code == "$1" ]] || fail "exit code $code, not $1: ${*:2}"
}

expect_exit 2 "$netlab" sideways
expect_exit 2 "$netlab" run 0 true
expect_exit 2 "$netlab" up 2 --rate fast

out=$("$netlab" run 2 --name "$lab" --rate 200mbit "$rehearse" bench p2p --min 2MiB --max 2MiB --algorithm direct \
    --iterations 2 --budget 1 --format json) || { [[ $? != 3 ]] || exit 0; fail "bench over two hosts"; }
expect_nothing_left
# 2 MiB less the bucket of 64 kB at 25 MB/s: 81 ms at least, however fast the machine. All of it must be right.
python3 - "$out" << 'EOF'
import json, sys
row = json.loads(sys.argv[1])["rows"][0]
assert row["ranks"] == 2 and row["wrong"] == 0, row
assert row["median_s"] > (2 * 2**20 - 65536) / 25e6, row
EOF

expect_exit 1 "$netlab" run 2 --name "$lab" false
expect_nothing_left

"$netlab" up 2 --name "$lab"
expect_exit 2 "$netlab" up 2 --name "$lab"
ip netns list | grep -q "^$lab-h1" || fail "a second up has taken the first one down"
names=$("$netlab" run 2 --name "$lab" hostname | sort | xargs)
# Two hosts compute on two cores, where there are two.
cores=$("$netlab" run 2 --name "$lab" grep Cpus_allowed_list /proc/self/status | sort -u | wc -l)
"$netlab" down --name "$lab"
[[ $cores == 2 || $(nproc) == 1 ]] || fail "both hosts run on the same core"
[[ $names == "$lab-h0 $lab-h1" ]] || fail "hosts called $names"
expect_nothing_left
