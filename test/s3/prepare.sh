#!/bin/sh
# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

# Installs an S3 server (moto's) into build/moto-venv, and prints the path of its program:
#
#   LENSCOL_MOTO_SERVER=$(test/s3/prepare.sh) go test ./exporter/jsonlexporter/internal/upload
set -eu
venv=$(cd "$(dirname "$0")/../.." && pwd)/build/moto-venv
if [ ! -x "$venv/bin/moto_server" ]; then
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check 'moto[server]==5.2.5' >&2
fi
echo "$venv/bin/moto_server"
