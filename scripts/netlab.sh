#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Hosts with a network of a chosen rate between them, on one machine: network namespaces on a bridge, so that what MPI
# sends goes through TCP at that rate and not through shared memory.
#
#   scripts/netlab.sh up 4 --rate 1gbit
#   scripts/netlab.sh run 4 build/release/cli/rehearse bench allreduce --max 4MiB
#   scripts/netlab.sh run 2 --on 1,3 COMMAND...         on these of the hosts that are up, whatever the number says
#   scripts/netlab.sh down
#   scripts/netlab.sh run 2 --rate 10gbit COMMAND...    brings hosts up for this one command, and takes them down
#
# --name NAME tells several labs apart (default: by the calling shell), --per-host R starts R ranks on each host.
# Needs root, iproute2 and Open MPI. One rank a host has a core of its own while there are cores, then they share them in
# turn. Latency cannot be added where the kernel has no netem; a burst of 64 kB passes above the rate (a bucket must hold
# one packet of 64 kB).
set -euo pipefail

refuse() { echo "netlab: cannot: $*" >&2; exit 3; }
wrong() { echo "netlab: $*; see the head of $0" >&2; exit 2; }

name=rh$PPID rate=1gbit burst=64kb per_host=1 on= word=${1:-} hosts=
case $word in up | run | down) shift ;; *) wrong "'$word': up, run or down" ;; esac
if [[ $word != down ]]; then
    hosts=${1:-}
    [[ $hosts =~ ^[1-9][0-9]?$ ]] || wrong "$word '$hosts': how many hosts, 1 to 99"
    shift
fi
while [[ ${1:-} == --* ]]; do
    [[ $# -ge 2 ]] || wrong "$1 needs a value"
    case $1 in
        --name) name=$2 ;;
        --rate) rate=$2 ;;
        --per-host) per_host=$2 ;;
        --on) on=$2 ;;
        *) wrong "unknown option $1" ;;
    esac
    shift 2
done
[[ $name =~ ^[a-z][a-z0-9]{0,10}$ ]] || wrong "--name '$name': up to eleven small letters and digits"
[[ $rate =~ ^[0-9]+[kmg]bit$ ]] || wrong "--rate '$rate': like 1gbit, 100mbit"
[[ $on =~ ^([0-9]+(,[0-9]+)*)?$ ]] || wrong "--on '$on': numbers of hosts, like 0,2"
[[ $per_host =~ ^[1-9][0-9]*$ ]] || wrong "--per-host '$per_host': 1 or more"
folder=${TMPDIR:-/tmp}/netlab-$name

[[ $(id -u) == 0 ]] || refuse "only root may make network namespaces"
command -v ip > /dev/null && command -v tc > /dev/null || refuse "ip and tc are missing: install iproute2"

# Everything is in namespaces of this lab's name, the bridge too: gone with them.
down() {
    local space
    for space in $(ip netns list | awk '{print $1}' | grep -E "^$name-(h[0-9]+|switch)$" || true); do
        ip netns delete "$space" || true
        rm -rf "/etc/netns/$space"
    done
    rm -rf "$folder"
}

# What a container or an old kernel may not allow: then its reason is ours.
try() { "$@" 2> "$folder/why" || refuse "'$*': $(cat "$folder/why")"; }

# $1 namespace, $2 device: a queue of 8 MB drops nothing that TCP sends here. Acknowledgements go first: behind the data
# of the other direction they would halve the rate of two hosts that send to each other at the same time.
limit() {
    local rule=(ip netns exec "$1" tc) link="htb rate $rate burst $burst cburst $burst"
    try "${rule[@]}" qdisc add dev "$2" root handle 1: htb default 20
    try "${rule[@]}" class add dev "$2" parent 1: classid 1:1 $link
    try "${rule[@]}" class add dev "$2" parent 1:1 classid 1:10 $link prio 0
    try "${rule[@]}" class add dev "$2" parent 1:1 classid 1:20 $link prio 1
    try "${rule[@]}" qdisc add dev "$2" parent 1:10 bfifo limit 1mb
    try "${rule[@]}" qdisc add dev "$2" parent 1:20 bfifo limit 8mb
    try "${rule[@]}" filter add dev "$2" parent 1: protocol ip prio 1 u32 match u16 0x0000 0xff80 at 2 flowid 1:10
}

add_host() {
    local host=$name-h$1 port=port$1
    ip netns add "$host"
    ip -n "$host" link set lo up
    try ip -n "$name-switch" link add "$port" type veth peer name eth0 netns "$host"
    ip -n "$name-switch" link set "$port" master bridge up
    ip -n "$host" addr add "10.77.0.$(($1 + 1))/24" dev eth0
    ip -n "$host" link set eth0 up
    # Others than Reno may hold back to measure the path.
    ip netns exec "$host" sysctl -qw net.ipv4.tcp_congestion_control=reno 2> /dev/null || true
    limit "$host" eth0
    limit "$name-switch" "$port"
    mkdir -p "/etc/netns/$host"
    cp "$folder/hosts" "/etc/netns/$host/hosts"
}

up() {
    mkdir "$folder"
    local i
    echo "127.0.0.1 localhost" > "$folder/hosts"
    for ((i = 0; i < hosts; ++i)); do echo "10.77.0.$((i + 1)) $name-h$i" >> "$folder/hosts"; done
    # mpirun's ssh: HOST COMMAND...
    cat > "$folder/agent" << EOF
#!/bin/sh
host=\$1
shift
pin=
[ -z "\$NETLAB_PIN" ] || pin="taskset -c \$((\${host##*-h} % $(nproc)))"
exec ip netns exec "\$host" unshare --uts sh -c "hostname \$host && exec \$pin \$*"
EOF
    chmod +x "$folder/agent"
    try ip netns add "$name-switch"
    try ip netns exec "$name-switch" unshare --uts true
    try ip -n "$name-switch" link add bridge type bridge
    ip -n "$name-switch" link set bridge up
    for ((i = 0; i < hosts; ++i)); do add_host "$i"; done
}

run() {
    command -v mpirun > /dev/null || refuse "mpirun is missing: install openmpi-bin"
    [[ $# -gt 0 ]] || wrong "run: which command?"
    local i list="" wanted
    IFS=, read -ra wanted <<< "${on:-$(seq -s, 0 $((hosts - 1)))}"
    for i in "${wanted[@]}"; do
        ip netns list | grep -q "^$name-h$i\b" || wrong "$name has no host $i: bring up as many"
        list+=${list:+,}$name-h$i:$per_host
    done
    [[ $per_host -gt 1 ]] || export NETLAB_PIN=1
    "$folder/agent" "$name-h${wanted[0]}" mpirun --allow-run-as-root --host "$list" -n $((${#wanted[@]} * per_host)) \
        --mca plm_rsh_agent "$folder/agent" --mca orte_tmpdir_base "$folder" --mca pml ob1 --mca btl tcp,self \
        --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --bind-to none "$(printf '%q ' "$@")"
}

case $word in
    down) down ;;
    up)
        [[ ! -e $folder ]] || wrong "$name is up already: down first, or another --name"
        trap down EXIT
        up
        trap - EXIT
        ;;
    run)
        if [[ ! -e $folder ]]; then
            trap down EXIT
            trap 'exit 130' INT TERM
            up
        fi
        run "$@"
        ;;
esac
