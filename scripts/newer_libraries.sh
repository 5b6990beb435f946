#!/bin/bash
# newer_libraries.sh [BUILD [FOLDER [LIBRARY...]]]: compiles, without making code, what includes SimGrid, oneDNN, MPI or Qt against the
# versions that Debian 13 has of them, and against MPICH. Its packages are fetched into FOLDER and installed nowhere; those of
# Debian 12 are what everybody builds with. By hand: it needs Debian's mirror.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/dev} folder=$(realpath -m "${2:-build/newer}")
[ -s "$build/compile_commands.json" ] || { echo "newer_libraries.sh: no $build/compile_commands.json: configure first" >&2; exit 2; }
packages=(libsimgrid-dev libdnnl-dev qt6-base-dev libopenmpi-dev libmpich-dev)

mkdir -p "$folder"/{etc,state/lists/partial,cache/archives/partial,debs,root}
touch "$folder/state/status"
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] http://deb.debian.org/debian trixie main" >"$folder/etc/sources.list"
cat >"$folder/apt.conf" <<END
Dir::Etc::sourcelist "$folder/etc/sources.list"; Dir::Etc::sourceparts "-"; Dir::State "$folder/state";
Dir::State::status "$folder/state/status"; Dir::Cache "$folder/cache"; APT::Sandbox::User "root";
END
export APT_CONFIG="$folder/apt.conf"
apt-get -qq update
(cd "$folder/debs" && apt-get -qq download "${packages[@]}")
unset APT_CONFIG
for file in "$folder"/debs/*.deb; do dpkg-deb -x "$file" "$folder/root"; done
for file in "$folder"/debs/*.deb; do dpkg-deb -f "$file" Package Version | paste -sd ' '; done

python3 scripts/newer_libraries.py "$build" "$folder/root" "${@:3}"
