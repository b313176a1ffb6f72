#!/bin/sh
# Builds the collectors that lenscol is measured against, of upstream's parts alone:
#
#   build/stock/stock      of stock-builder.yaml: the parts that somebody without lenscol would use
#   build/stock-all/stock  with `stock.sh all`: builder-config.yaml without our components
#
# ocb writes the sources, and they are compiled within this module: the same version of every dependency as lenscol has, and
# nothing is compiled that `make build` has compiled. The go tool passes over folders whose names begin with _.
set -eu
cd "$(dirname "$0")/../.."

case ${1:-} in
all) name=stock-all config=builder-config.yaml ;;
*) name=stock config=test/bench/stock-builder.yaml ;;
esac
tmp=$(mktemp -d) # ocb leaves folders in its temporary directory
trap 'rm -rf "$tmp" "build/_$name"' EXIT
mkdir -p build
# A component of ours is two lines, gomod and import; the section telemetry has ours alone. Of those that wrap one of upstream's, that
# one is taken.
awk -v core="$(awk '$1 == "go.opentelemetry.io/collector/otelcol" { print $2 }' go.mod)" '
	BEGIN {
		wrapped["receiver/otlpreceiver"] = "go.opentelemetry.io/collector/receiver/otlpreceiver " core
		wrapped["exporter/prometheusremotewriteexporter"] = "github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter " core
		wrapped["extension/filestorage"] = "github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage " core
	}
	/^telemetry:/ { next }
	/gomod: github.com\/lenscol\// { ours = 1; next }
	ours && /import:/ {
		ours = 0
		sub("^github.com/lenscol/lenscol/", "", $2)
		if ($2 in wrapped) print "  - gomod: " wrapped[$2]
		next
	}
	{ ours = 0; print }' "$config" >"$tmp/$name.yaml"
TMPDIR=$tmp go tool -modfile="$PWD/internal/tools/go.mod" builder --config "$tmp/$name.yaml" \
	--skip-compilation --skip-get-modules --output-path "build/_$name" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o "build/$name/stock" "./build/_$name"
