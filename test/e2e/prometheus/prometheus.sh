#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# prometheus.sh finds Debian's Prometheus, which it installs where it is root on Debian. Exit code 3: it cannot be had here; stderr says why.
set -eu
if ! command -v prometheus >/dev/null; then
	echo "prometheus: install Debian's prometheus" >&2
	{ command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; } || {
		echo "prometheus: not installed, and this is not Debian with root" >&2
		exit 3
	}
	# Debian would start it at once.
	[ -e /usr/sbin/policy-rc.d ] || {
		printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
		trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	}
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus; } >&2 || {
		echo "prometheus: not installed, and Debian's archive cannot be reached" >&2
		exit 3
	}
fi
echo "LENSCOL_PROMETHEUS_BIN=$(command -v prometheus)"
