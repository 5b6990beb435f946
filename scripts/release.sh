#!/bin/bash
# release.sh [FOLDER]: the tarball of the checked-out commit and its checksum. The version has one place, CMakeLists.txt;
# CITATION.cff must name the same, and nothing may be uncommitted.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build}
version=$(sed -n 's/^project(rehearse VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
grep -qx "version: $version" CITATION.cff || { echo "release.sh: CITATION.cff does not say version $version" >&2; exit 2; }
grep -q "(version \"$version\")" packaging/guix/guix.scm || { echo "release.sh: packaging/guix/guix.scm does not say version $version" >&2; exit 2; }
[ -z "$(git status --porcelain)" ] || { echo "release.sh: there are uncommitted changes" >&2; exit 2; }
mkdir -p "$folder"
git archive --format=tar.gz --prefix="rehearse-$version/" -o "$folder/rehearse-$version.tar.gz" HEAD
(cd "$folder" && sha256sum "rehearse-$version.tar.gz" | tee "rehearse-$version.tar.gz.sha256")
