#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# js.sh gets opentelemetry-js from npm as client/package-lock.json pins it, once, and prints where it is. Exit code 3: it cannot be had here;
# stderr says why.
set -eu
client=$(cd "$(dirname "$0")/client" && pwd)
impossible() {
	echo "js: $*" >&2
	exit 3
}
command -v npm >/dev/null || {
	{ command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; } || impossible "npm is not installed, and this is not Debian with root"
	echo "js: install npm" >&2
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends npm; } >&2 ||
		impossible "npm is not installed, and Debian's archive cannot be reached"
}
dir=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/js
mkdir -p "$dir"
exec 9>"$dir/lock"
flock 9
if ! cmp -s "$client/package-lock.json" "$dir/complete"; then
	echo "js: install opentelemetry-js" >&2
	rm -f "$dir/complete"
	cp "$client/package.json" "$client/package-lock.json" "$dir/"
	npm ci --prefix "$dir" --silent --no-audit --no-fund >&2 || impossible "npm cannot get opentelemetry-js"
	cp "$client/package-lock.json" "$dir/complete"
fi
# What is imported is looked for beside the program.
cp "$client/client.mjs" "$dir/client.mjs"
echo "LENSCOL_JS_CLIENT=$dir/client.mjs"
