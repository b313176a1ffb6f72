#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# debian13.sh NAME PACKAGE...: unpacks packages of Debian 13 (trixie) into a folder of the cache,
# ${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/debian13/NAME, once, and prints it. Nothing is installed, and no package brings what it depends on: this is
# for programs that need no more than a C library. DEBIAN_MIRROR names another archive.
# Exit code 3: this machine cannot have them; stderr says why. Two may run at once: the second waits.
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/debian13
name=$1
shift

impossible() {
	echo "debian13: $name cannot be had here: $*" >&2
	exit 3
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
root=$cache/$name
if [ "$(cat "$root.complete" 2>/dev/null)" != "$*" ]; then
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -e "$keyring" ] || impossible "no $keyring"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	chmod 755 "$work"
	mkdir -p "$work/lists/partial" "$work/archives/partial"
	echo "deb [signed-by=$keyring] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} trixie main" >"$work/trixie.list"
	apt() {
		apt-get -qq -o Dir::Etc::sourcelist="$work/trixie.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" \
			-o Dir::State::status=/dev/null -o Dir::Cache="$work" -o APT::Sandbox::User=root "$@" >&2
	}
	apt update || impossible "apt-get update of trixie"
	(cd "$work" && apt download "$@") || impossible "apt-get download $*"
	rm -rf "$root" "$root.complete"
	for package in "$work"/*.deb; do dpkg-deb -x "$package" "$root"; done
	echo "$*" >"$root.complete"
fi
echo "$root"
