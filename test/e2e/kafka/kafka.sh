#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# kafka.sh gets what the tests of Kafka need, once, and prints it as NAME=VALUE for env: Java, which it installs on Debian where there
# is none, and the jars of a broker by Maven, in ${XDG_CACHE_HOME:-$HOME/.cache}/lenscol. Exit code 3: this machine cannot have them;
# stderr says why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|.*<artifactId>kafka_2.13</artifactId><version>\(.*\)</version>.*|\1|p' "$here/pom.xml")
jars=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/kafka-$version

say() { echo "kafka: $*" >&2; }
impossible() {
	say "a broker cannot be had here: $*"
	exit 3
}

# need PROGRAM PACKAGE: the program, which Debian's package manager installs where it is missing.
need() {
	! command -v "$1" >/dev/null || return 0
	{ command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; } || impossible "$1 is not installed, and this is not Debian with root"
	say "install $2"
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2"; } >&2 ||
		impossible "$1 is not installed, and $2 cannot be"
}

need java default-jre-headless
if [ ! -d "$jars" ]; then
	need mvn maven
	say "get Kafka $version by Maven"
	mkdir -p "$(dirname "$jars")"
	new=$(mktemp -d "$jars.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$new/jars" >&2 || impossible "Maven cannot get Kafka $version"
	mv -T "$new/jars" "$jars" 2>/dev/null || [ -d "$jars" ] # Another one was faster.
fi
say "Kafka $version, $(java -version 2>&1 | head -n 1)"
echo "LENSCOL_KAFKA_JARS=$jars"
