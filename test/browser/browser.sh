#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# browser.sh gets what the tests of the page need, once, and prints it as NAME=VALUE for env: a Chromium, which it installs on
# Debian where there is none, and axe-core from npm, in build/axe. Exit code 3: this machine cannot have them; stderr says why.
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
axe=4.14.1

say() { echo "browser: $*" >&2; }
impossible() {
	say "the page cannot be tested here: $*"
	exit 3
}

find_chromium() {
	for name in chromium chromium-browser google-chrome; do
		command -v "$name" && return
	done
	return 1
}

# install PACKAGE... by Debian's package manager.
install() {
	{ command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; } || return 1
	say "install $*"
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } >&2
}

chromium=$(find_chromium) || { install chromium fonts-dejavu-core && chromium=$(find_chromium); } ||
	impossible "no chromium is installed, and this is not Debian with root, or its archive cannot be reached"
dir=$repo/build/axe/$axe
if [ ! -e "$dir/package/axe.min.js" ]; then
	command -v npm >/dev/null || install npm || impossible "npm, which gets axe-core, is not installed and cannot be"
	rm -rf "$dir" && mkdir -p "$dir"
	(cd "$dir" && npm pack --silent "axe-core@$axe" && tar -xzf axe-core-*.tgz) >&2 || impossible "npm cannot get axe-core $axe"
fi
echo "LENSCOL_CHROMIUM=$chromium"
echo "LENSCOL_AXE=$dir/package/axe.min.js"
