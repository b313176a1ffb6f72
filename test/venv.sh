#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# venv.sh NAME PACKAGE...: installs Python packages into build/venv/NAME, once, and prints the folder of its programs.
set -eu
venv=$(cd "$(dirname "$0")/.." && pwd)/build/venv/$1
shift
if [ ! -e "$venv/complete" ]; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
	touch "$venv/complete"
fi
echo "$venv/bin"
