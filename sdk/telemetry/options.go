// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/sdk/telemetry"

import (
	"io"
	"os"

	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/lenscol/lenscol/sdk/rank"
	"github.com/lenscol/lenscol/sdk/telemetry/internal/console"
)

// Option is what [Setup] is told beside the [Config]. It is made by the functions of this package.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	rank, worldSize int
	isRank          bool
	localRank       int
	rankFromEnv     bool
	strategy        rank.Strategy

	resource, resourceDefaults []attribute.KeyValue
	publish                    bool

	sampler        sdktrace.Sampler
	spanProcessors []sdktrace.SpanProcessor
	spanExporter   sdktrace.SpanExporter
	metricReader   sdkmetric.Reader
	logProcessor   sdklog.Processor
	lines          *console.Console

	groupsFile    string
	groupsSignals []os.Signal

	reinit bool
}

func newOptions(list []Option) *options {
	o := &options{localRank: rank.Unknown, lines: console.New(os.Stdout)}
	for _, option := range list {
		option.apply(o)
	}
	return o
}

// WithRank says which rank this process is, of how many. A process without a rank, such as a server or a launcher, leaves it
// out: it always exports.
func WithRank(rank, worldSize int) Option {
	return optionFunc(func(o *options) { o.rank, o.worldSize, o.isRank = rank, worldSize, true })
}

// WithRankFromEnv takes the rank from the launcher: RANK, WORLD_SIZE and LOCAL_RANK of torchrun, else SLURM_PROCID, SLURM_NTASKS
// and SLURM_LOCALID of srun. What WithRank says goes before it.
func WithRankFromEnv() Option { return optionFunc(func(o *options) { o.rankFromEnv = true }) }

// WithLocalRank says which rank of its node this process is. Without it, that is LOCAL_RANK, else SLURM_LOCALID.
func WithLocalRank(localRank int) Option {
	return optionFunc(func(o *options) { o.localRank = localRank })
}

// WithExportStrategy replaces the strategy of the Config. Without a rank it is asked for rank 0 of 1.
func WithExportStrategy(s rank.Strategy) Option {
	return optionFunc(func(o *options) { o.strategy = s })
}

// WithResource adds attributes to the resource. They go before all others: those of the Config, of OTEL_RESOURCE_ATTRIBUTES,
// and what is detected.
func WithResource(attrs ...attribute.KeyValue) Option {
	return optionFunc(func(o *options) { o.resource = append(o.resource, attrs...) })
}

// WithResourceDefaults adds attributes that all others go before.
func WithResourceDefaults(attrs ...attribute.KeyValue) Option {
	return optionFunc(func(o *options) { o.resourceDefaults = append(o.resourceDefaults, attrs...) })
}

// WithPublishedResource writes the resource into OTEL_RESOURCE_ATTRIBUTES of this process, for the processes that it starts: they
// have its run id, its job, and its rank. What is the process's own is left out (service.name, service.version,
// service.instance.id, process.pid), and what each finds out on its machine, as host.name. [Handle.Shutdown] sets the variable
// back.
func WithPublishedResource() Option { return optionFunc(func(o *options) { o.publish = true }) }

// WithSampler replaces the sampler, that of OTEL_TRACES_SAMPLER too.
func WithSampler(s sdktrace.Sampler) Option { return optionFunc(func(o *options) { o.sampler = s }) }

// WithSpanProcessor adds a processor before the one that exports.
func WithSpanProcessor(p sdktrace.SpanProcessor) Option {
	return optionFunc(func(o *options) { o.spanProcessors = append(o.spanProcessors, p) })
}

// WithSpanExporter replaces the exporter of spans; the Config's exporter and target do not count then.
func WithSpanExporter(e sdktrace.SpanExporter) Option {
	return optionFunc(func(o *options) { o.spanExporter = e })
}

// WithMetricReader replaces the reader and exporter of metrics.
func WithMetricReader(r sdkmetric.Reader) Option {
	return optionFunc(func(o *options) { o.metricReader = r })
}

// WithLogProcessor replaces the processor and exporter of logs.
func WithLogProcessor(p sdklog.Processor) Option {
	return optionFunc(func(o *options) { o.logProcessor = p })
}

// WithOutput says where console lines are written; to standard output unless it is given.
func WithOutput(w io.Writer) Option {
	return optionFunc(func(o *options) { o.lines = console.New(w) })
}

// WithGroupsFile switches the span groups by a file, while the process runs: the groups and presets that it names, with commas or
// blanks between, are on, and no others; `none` switches all off; a # begins a comment. The file is read at the start, and then
// every two seconds or, where signals are given (syscall.SIGHUP), when one comes. A file that is missing, empty or not
// readable leaves the groups as they are; the Config's hold until there is one.
func WithGroupsFile(path string, signals ...os.Signal) Option {
	return optionFunc(func(o *options) { o.groupsFile, o.groupsSignals = path, signals })
}

// WithReinit allows Setup to be called again in one process, for tests.
func WithReinit() Option { return optionFunc(func(o *options) { o.reinit = true }) }
