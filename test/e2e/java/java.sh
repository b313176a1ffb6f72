#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# java.sh gets OpenTelemetry's SDK for Java by Maven, once, and prints where it is. Exit code 3: it cannot be had here; stderr says why.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's|.*<artifactId>opentelemetry-sdk</artifactId><version>\(.*\)</version>.*|\1|p' "$here/client/pom.xml")
jars=${XDG_CACHE_HOME:-$HOME/.cache}/lenscol/opentelemetry-java-$version

impossible() {
	echo "java: the SDK for Java cannot be had here: $*" >&2
	exit 3
}

# A program of one file is compiled as it is started, which takes a JDK.
missing=
command -v javac >/dev/null || missing=default-jdk-headless
[ -d "$jars" ] || command -v mvn >/dev/null || missing="$missing maven"
if [ -n "$missing" ]; then
	{ command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; } || impossible "no $missing, and this is not Debian with root"
	echo "java: install $missing" >&2
	# shellcheck disable=SC2086
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing; } >&2 ||
		impossible "no $missing, and Debian's archive cannot be reached"
fi
if [ ! -d "$jars" ]; then
	echo "java: get opentelemetry-java $version by Maven" >&2
	mkdir -p "$(dirname "$jars")"
	new=$(mktemp -d "$jars.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	mvn -q -B -f "$here/client/pom.xml" dependency:copy-dependencies -DoutputDirectory="$new/jars" >&2 || impossible "Maven cannot get it"
	mv -T "$new/jars" "$jars" 2>/dev/null || [ -d "$jars" ] # Another one was faster.
fi
echo "LENSCOL_JAVA_JARS=$jars"
