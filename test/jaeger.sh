#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# jaeger.sh: builds Jaeger all-in-one from its Go module, once, into ${XDG_CACHE_HOME:-$HOME/.cache}/lenscol, and prints the path
# of the binary. Its pages are not in the module, its API is. Exit code 3: it cannot be had here; stderr says why. Two may run at once: the second waits.
set -eu
version=1.76.0
dir=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/jaeger-$version
package=github.com/jaegertracing/jaeger/cmd/all-in-one

mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
if [ ! -x "$dir/all-in-one" ]; then
	echo "jaeger: build Jaeger $version, which takes minutes" >&2
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	cd "$tmp"
	go mod init jaeger >&2
	# Not go install: the module has replace directives.
	go get -tool "$package@v$version" >"$dir/log" 2>&1 || {
		echo "jaeger: its module cannot be had: $(tail -n 1 "$dir/log") ($dir/log)" >&2
		exit 3
	}
	CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false' go build -ldflags '-s -w' -o "$dir/new" "$package" >&2
	mv "$dir/new" "$dir/all-in-one"
fi
echo "$dir/all-in-one"
