#!/bin/bash
# wheel.sh BUILD SOURCE PYTHON: pip makes a wheel of SOURCE with the module that BUILD holds, and installs it elsewhere.
set -euo pipefail
build=$1 source=$2 python=$3
"$python" -c 'import pip' 2>/dev/null || { echo "pip is not installed (python3-pip)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip --disable-pip-version-check install --no-index --target "$work/site" --config-settings "build-dir=$build" "$source" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
cd "$work"
PYTHONPATH="$work/site" "$python" -c '
import rehearse
assert rehearse.__file__.endswith("site/rehearse/__init__.py"), rehearse.__file__
assert rehearse.predict("resnet50", "summit", devices=[6]).points[0].step_s > 0'
