#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# refinery.sh builds Honeycomb's Refinery, once, from the module that tools/go.mod names, into ${XDG_CACHE_HOME:-$HOME/.cache}/lenscol, and
# prints it as NAME=VALUE for env. Exit code 3: it cannot be had here; stderr says why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(awk '$2 == "github.com/honeycombio/refinery" { print $3 }' "$here/tools/go.mod")
binary=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/refinery-$version

if [ ! -x "$binary" ]; then
	echo "refinery: build Refinery $version, which takes a minute" >&2
	mkdir -p "$(dirname "$binary")"
	trap 'rm -f "$binary.$$"' EXIT
	CGO_ENABLED=0 go build -C "$here/tools" -trimpath -o "$binary.$$" github.com/honeycombio/refinery/cmd/refinery >&2 || {
		echo "refinery: Refinery $version cannot be built here: the reason stands above" >&2
		exit 3
	}
	mv "$binary.$$" "$binary"
fi
echo "refinery: Refinery $version" >&2
echo "LENSCOL_REFINERY_BIN=$binary"
