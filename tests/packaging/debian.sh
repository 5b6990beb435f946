#!/bin/bash
# debian.sh BUILD VERSION: cpack makes the four packages of BUILD, each with what Debian wants in it; lintian, where it is
# installed, finds no errors.
set -euo pipefail
build=$1 version=$2
command -v dpkg-shlibdeps >/dev/null || { echo "dpkg-dev is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "debian.sh: $1" >&2; exit 1; }
(cd "$build" && cpack -G DEB -B "$work" >"$work/log" 2>&1) || { cat "$work/log"; fail "cpack failed"; }
for name in rehearse rehearse-gui librehearse-dev python3-rehearse; do
    package=$(echo "$work/${name}_$version"-*.deb)
    [ -s "$package" ] || fail "no package $name"
    files=$(dpkg-deb -c "$package" | awk '{print $6}')
    for file in copyright changelog.Debian.gz; do
        grep -qx "./usr/share/doc/$name/$file" <<<"$files" || fail "$name: no $file"
    done
    if grep -q '\.1$' <<<"$files"; then fail "$name: a manual page is not compressed"; fi
done
# Whatever a program is linked to comes with a package of Debian, or it would not start where that is not.
for name in rehearse rehearse-gui python3-rehearse; do dpkg-deb -x "$work/${name}_$version"-*.deb "$work/programs"; done
needed=$(find "$work/programs" -type f \( -path '*/bin/*' -o -name '*.so' \) -exec objdump -p {} + | awk '/NEEDED/ {print "*/" $2}' | sort -u)
set -f  # patterns are dpkg's, not the shell's
dpkg -S $needed >/dev/null 2>"$work/missing" || fail "in no package of Debian: $(cat "$work/missing")"
set +f
# Where Debian's shells look for completions.
for file in bash-completion/completions/rehearse zsh/vendor-completions/_rehearse fish/vendor_completions.d/rehearse.fish; do
    [ -s "$work/programs/usr/share/$file" ] || fail "rehearse: no share/$file"
done
depends() { dpkg-deb -f "$work/$1_$version"-*.deb Depends; }
for library in libsimgrid libopenmpi libc6; do
    depends rehearse | grep -q "$library" || fail "rehearse does not depend on $library"
done
depends rehearse-gui | grep -q libqt6widgets6 || fail "rehearse-gui does not depend on Qt"
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error "$work"/*.deb || fail "lintian finds errors"
else
    echo "lintian is not installed: not asked"
fi
