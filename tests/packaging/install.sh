#!/bin/bash
# install.sh BUILD SOURCE COMPILER: installs BUILD with DESTDIR, moves it into a prefix with a space, and uses all of it.
set -euo pipefail
build=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
DESTDIR="$work/stage" cmake --install "$build" --prefix /opt/rehearse >"$work/log"
prefix="$work/a prefix"
mv "$work/stage/opt/rehearse" "$prefix"

fail() { echo "install.sh: $1" >&2; exit 1; }
"$prefix/bin/rehearse" predict --model resnet50 --machine summit --devices 6 --batch 32 >"$work/said" 2>&1 || fail "the installed program does not predict: $(cat "$work/said")"
for page in rehearse rehearse-predict; do
    [ -s "$prefix/share/man/man1/$page.1" ] || fail "no manual page $page"
done
man --warnings -l "$prefix/share/man/man1/rehearse-predict.1" >"$work/page" 2>"$work/warned" || true
[ ! -s "$work/warned" ] || grep -q "man: command not found\|man: not found" "$work/warned" || fail "man warns: $(cat "$work/warned")"
bash -c "source '$prefix/share/bash-completion/completions/rehearse'
         COMP_WORDS=(rehearse predict --mac) COMP_CWORD=2; _rehearse; [ \"\${COMPREPLY[*]}\" = --machine ]" || fail "bash completes nothing"
[ -s "$prefix/share/rehearse/machines/summit.toml" ] || fail "no machine files"
[ -s "$prefix/share/rehearse/requests/resnet50-summit.toml" ] || fail "no requests"

cmake -S "$source/packaging/example" -B "$work/example" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" >"$work/log" 2>&1 || { cat "$work/log"; fail "the example is not configured"; }
cmake --build "$work/example" >"$work/log" 2>&1 || { cat "$work/log"; fail "the example is not built"; }
"$work/example/example" | tee "$work/said"
[ "$(grep -c 'devices:' "$work/said")" = 2 ] || fail "the example predicts nothing"
