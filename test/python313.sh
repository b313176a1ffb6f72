#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# python313.sh NAME PACKAGE...: installs packages for Python 3.13 as NAME, once, and prints the path of that Python.
#
# Where no python3.13 is installed, it comes from Debian 13 (trixie), which debootstrap puts into a folder of the cache,
# ${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/python313. What is printed is then a command that runs it below that root, where the
# working directory and the temporary folder are at their places. That needs root and Debian's archive (DEBIAN_MIRROR names another).
# Exit code 3: this machine cannot have Python 3.13; stderr says why. Two may run at once: the second waits.
set -eu
cache=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/python313
root=$cache/trixie
name=$1
shift

say() { echo "python313: $*" >&2; }
impossible() {
	say "Python 3.13 cannot be had here: $*"
	exit 3
}

# debian puts a Debian with Python 3.13 into $root. It is complete once it has that name.
debian() {
	[ ! -d "$root" ] || return 0
	[ "$(id -u)" = 0 ] || impossible "python3.13 is not installed, and debootstrap needs root"
	if ! command -v debootstrap >/dev/null; then
		say "install debootstrap"
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap; } >&2 ||
			impossible "python3.13 is not installed, and debootstrap cannot be installed either"
	fi
	say "put Debian 13 into $root, which takes minutes"
	rm -rf "$root.new"
	debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie "$root.new" \
		"${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$cache/debootstrap.log" 2>&1 ||
		impossible "debootstrap: $(tail -n 1 "$cache/debootstrap.log") ($cache/debootstrap.log)"
	mv "$root.new" "$root"
}

# like_host gives the root what pip on this machine works with: names of hosts, certificates, configuration.
like_host() {
	for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt /etc/pip.conf "$HOME/.config/pip/pip.conf" \
		"$HOME/.pip/pip.conf" "${PIP_CERT:-}" "${PIP_CONFIG_FILE:-}" "${SSL_CERT_FILE:-}" "${REQUESTS_CA_BUNDLE:-}"; do
		[ -f "$file" ] || continue
		mkdir -p "$root$(dirname "$file")"
		cp -L --remove-destination "$file" "$root$file"
	done
}

# in_root writes a command $1 that runs the program $2 below the root, in mounts of its own that end with it.
in_root() {
	cat >"$1.new" <<-SCRIPT
		#!/bin/sh
		exec unshare --mount sh -euc '
			for dir in /proc /dev /sys "\${TMPDIR:-/tmp}" "\$PWD"; do
				[ "\$dir" != / ] || continue
				mkdir -p "$root\$dir"
				mount --rbind "\$dir" "$root\$dir"
			done
			exec chroot "$root" sh -euc "cd \"\\\$0\"; exec \"\\\$@\"" "\$PWD" "\$@"
		' sh "$2" "\$@"
	SCRIPT
	chmod +x "$1.new"
	mv "$1.new" "$1"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if python3.13 -c 'import ensurepip' 2>/dev/null; then
	make="python3.13 -m venv" venv=$cache/$name run=$cache/$name/bin/python
else
	debian
	make=$cache/python-of-trixie venv=/venv/$name run=$cache/python-$name
	in_root "$make" /usr/bin/python3
	"$make" -c pass || impossible "a root cannot be entered: unshare, mount and chroot must be allowed"
	make="$make -m venv"
	in_root "$run" "$venv/bin/python"
	like_host
fi
complete=$cache/$name.complete # holds what is installed
if [ "$(cat "$complete" 2>/dev/null)" != "$*" ] || ! "$run" -c pass 2>/dev/null; then
	say "install $* for Python 3.13"
	rm -f "$complete"
	$make --clear "$venv" >&2
	"$run" -m pip install -qq --disable-pip-version-check "$@" >&2 || impossible "pip cannot install $*"
	echo "$*" >"$complete"
fi
echo "$run"
