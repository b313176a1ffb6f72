// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter // import "github.com/lenscol/lenscol/exporter/jsonlexporter"

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/upload"
)

// Config is the configuration of the jsonl exporter.
type Config struct {
	// Path is the file that lines are appended to, relative to the working directory. `{signal}` in it stands for traces,
	// metrics or logs; without it all three go into one file. `{run}`, `{rank}`, `{service}`, `{host}` and `{attr:KEY}`
	// stand for what a record's resource says, `{date}` for the day of writing in UTC. Compression adds its extension.
	// Default `lens-data/{signal}.jsonl`.
	Path string `mapstructure:"path"`

	// MaxOpenFiles bounds how many files are open at once; the one that was not used for longest makes room. Default 256.
	MaxOpenFiles int `mapstructure:"max_open_files"`

	// MaxPartitions bounds how many different files the values in a path can lead to; what comes beyond goes to one file
	// whose values are `overflow`. A date does not count. Default 10000.
	MaxPartitions int `mapstructure:"max_partitions"`

	// Compression of the files: `none`, the default, `gzip` or `zstd`.
	Compression Compression `mapstructure:"compression"`

	// CompressionLevel is 1 to 9 for gzip, 1 to 22 for zstd. Default 0: the fastest.
	CompressionLevel int `mapstructure:"compression_level"`

	// Layout is how a line looks, as docs/format.md specifies: `compact`, the default; `console`, as NeMo Lens's console
	// exporter writes; or `otlp_json`, an OTLP/JSON request. Resource and Identity are of compact alone.
	Layout Layout `mapstructure:"layout"`

	// Resource says how a line names its resource and scope: `reference`, the default, by the id of a line that stands
	// once in the file, or `inline`, whole in each line.
	Resource ResourceMode `mapstructure:"resource"`

	// Identity lists what each line says of its resource for people with jq: any of `run`, `rank`, `service`. Default all.
	Identity []string `mapstructure:"identity"`

	// Sync is when lines are forced to the disk, beyond the page cache: `none`, the default, `interval`, or `always`,
	// before a request is answered. All three survive the end of the process, `always` a power cut too.
	Sync SyncMode `mapstructure:"sync"`

	// SyncInterval is the longest time between two syncs where sync is `interval`. Default 1s.
	SyncInterval time.Duration `mapstructure:"sync_interval"`

	// FlushInterval is the longest time that requests wait so that one write serves more of them. A file that was idle for
	// as long is written at once. Default 0: a write begins when the one before it ends. Default with compression 200ms:
	// each write is a frame, and larger frames are smaller in all.
	FlushInterval *time.Duration `mapstructure:"flush_interval"`

	// Rotation ends a file under a name of its own and begins the next one.
	Rotation RotationConfig `mapstructure:"rotation"`

	// Retention bounds the archive: all files of this exporter's path, and of others below the same folder.
	Retention RetentionConfig `mapstructure:"retention"`

	// Upload sends ended files to an object store. Off unless `upload::url` is set.
	Upload upload.Config `mapstructure:"upload"`

	// MinFreeBytes stops writing, retryable, before less than this is free on the disk. Default 512 MiB; 0 turns it off.
	MinFreeBytes Bytes `mapstructure:"min_free_bytes"`

	// CreateDirectory creates the folder of a path where it is missing. Default true.
	CreateDirectory bool `mapstructure:"create_directory"`

	// FileMode is the permission of new files, in octal. Default "0640".
	FileMode FileMode `mapstructure:"file_mode"`

	// DirectoryMode is the permission of new folders, in octal. Default "0750".
	DirectoryMode FileMode `mapstructure:"directory_mode"`

	// Timeout bounds one try to write a request, the wait for its group included. Default 30s; 0 waits for ever.
	Timeout time.Duration `mapstructure:"timeout"`

	// RetryConfig repeats what could not be written. Default: every 100 ms to 500 ms until the sender gives up.
	RetryConfig configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	// QueueConfig answers requests before they are written. Off by default: acknowledged means written.
	QueueConfig configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
}

// RotationConfig says when a file is ended, and how many ended ones are kept.
type RotationConfig struct {
	// MaxBytes is the size that a file does not pass, unless a single line does. Default 256 MiB; 0 turns it off.
	MaxBytes Bytes `mapstructure:"max_bytes"`

	// MaxAge is the age, from its creation, at which a file that holds lines is ended. Default 0: no age.
	MaxAge time.Duration `mapstructure:"max_age"`

	// Schedule ends files by the wall clock, in UTC: `daily` or `hourly`. Default none.
	Schedule Schedule `mapstructure:"schedule"`

	// MaxBackups is how many ended files of a path are kept; the oldest are removed. Default 0: all.
	MaxBackups int `mapstructure:"max_backups"`
}

// RetentionConfig bounds what is kept of an archive. Only files that the path can name are ever removed, and none that is being
// written.
type RetentionConfig struct {
	// MaxAge is how long after their last write files are kept. Default 0: for ever.
	MaxAge time.Duration `mapstructure:"max_age"`

	// MaxTotalBytes bounds the bytes of all files together; the oldest are removed. Default 0: no bound.
	MaxTotalBytes Bytes `mapstructure:"max_total_bytes"`
}

// Compression is how files are compressed.
type Compression string

// Schedule is when files are ended by the wall clock.
type Schedule string

// Layout is how a line looks.
type Layout string

// ResourceMode says how a line names its resource and scope.
type ResourceMode string

// SyncMode says when lines are forced to the disk.
type SyncMode string

// The values that the settings take.
const (
	LayoutCompact  Layout = "compact"
	LayoutConsole  Layout = "console"
	LayoutOTLPJSON Layout = "otlp_json"

	ResourceReference ResourceMode = "reference"
	ResourceInline    ResourceMode = "inline"

	SyncNone     SyncMode = "none"
	SyncInterval SyncMode = "interval"
	SyncAlways   SyncMode = "always"

	CompressionNone Compression = "none"
	CompressionGzip Compression = "gzip"
	CompressionZstd Compression = "zstd"

	ScheduleDaily  Schedule = "daily"
	ScheduleHourly Schedule = "hourly"
)

var (
	_                      component.Config    = (*Config)(nil)
	_                      confmap.Unmarshaler = (*Config)(nil)
	_                      confmap.Validator   = (*Config)(nil)
	errPathEmpty                               = errors.New("path: is empty; name a file, like lens-data/{signal}.jsonl")
	errQueueWithoutRetries                     = errors.New("sending_queue: needs retry_on_failure::enabled: what is queued was acknowledged, and would be lost at the first full disk")
)

func createDefaultConfig() component.Config {
	retry := configretry.NewDefaultBackOffConfig()
	retry.InitialInterval = 100 * time.Millisecond
	retry.MaxInterval = 500 * time.Millisecond // Writing goes on within a second of space coming back.
	retry.MaxElapsedTime = 0                   // The sender's deadline ends it; what is queued is never given up.
	return &Config{
		Path:            "lens-data/{signal}.jsonl",
		MaxOpenFiles:    256,
		MaxPartitions:   10_000,
		Compression:     CompressionNone,
		Layout:          LayoutCompact,
		Resource:        ResourceReference,
		Identity:        []string{"run", "rank", "service"},
		Sync:            SyncNone,
		SyncInterval:    time.Second,
		Rotation:        RotationConfig{MaxBytes: 256 << 20},
		MinFreeBytes:    512 << 20,
		CreateDirectory: true,
		FileMode:        0o640,
		DirectoryMode:   0o750,
		Timeout:         30 * time.Second,
		RetryConfig:     retry,
		Upload:          upload.NewDefaultConfig(),
		QueueConfig:     configoptional.Default(exporterhelper.NewDefaultQueueConfig()),
	}
}

// Unmarshal refuses a number without a unit where a time is meant: it would be taken for nanoseconds.
func (cfg *Config) Unmarshal(conf *confmap.Conf) error {
	for _, key := range []string{"flush_interval", "sync_interval", "timeout", "rotation::max_age", "retention::max_age", "upload::timeout"} {
		switch n := conf.Get(key).(type) {
		case int, int64, uint64, float64:
			if fmt.Sprint(n) != "0" {
				return fmt.Errorf("%s: %v has no unit; write %vs for seconds or %vms for milliseconds", key, n, n, n)
			}
		}
	}
	return conf.Unmarshal(cfg)
}

// Validate checks what can be checked without touching the disk.
func (cfg *Config) Validate() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if cfg.Path == "" {
		errs = append(errs, errPathEmpty)
	}
	if strings.HasSuffix(cfg.Path, "/") || strings.ContainsRune(cfg.Path, 0) {
		add("path: %q does not name a file", cfg.Path)
	}
	if _, err := cfg.template(); err != nil {
		errs = append(errs, err)
	}
	if cfg.MaxOpenFiles < 1 {
		add("max_open_files: must be at least 1, is %d", cfg.MaxOpenFiles)
	}
	if cfg.MaxPartitions < 1 {
		add("max_partitions: must be at least 1, is %d", cfg.MaxPartitions)
	}
	oneOf(add, "compression", cfg.Compression, CompressionNone, CompressionGzip, CompressionZstd)
	if most := map[Compression]int{CompressionGzip: 9, CompressionZstd: 22}[cfg.Compression]; cfg.CompressionLevel < 0 || cfg.CompressionLevel > most {
		add("compression_level: %d is not a level of %s; it must be 0 (the default) to %d", cfg.CompressionLevel, cfg.Compression, most)
	}
	oneOf(add, "rotation::schedule", cfg.Rotation.Schedule, "", ScheduleDaily, ScheduleHourly)
	oneOf(add, "layout", cfg.Layout, LayoutCompact, LayoutConsole, LayoutOTLPJSON)
	oneOf(add, "resource", cfg.Resource, ResourceReference, ResourceInline)
	oneOf(add, "sync", cfg.Sync, SyncNone, SyncInterval, SyncAlways)
	for _, member := range cfg.Identity {
		oneOf(add, "identity", member, "run", "rank", "service")
	}
	if cfg.Sync == SyncInterval && cfg.SyncInterval <= 0 {
		add("sync_interval: must be greater than 0, is %s", cfg.SyncInterval)
	}
	if cfg.Sync == SyncInterval && cfg.flushInterval() > cfg.SyncInterval {
		add("flush_interval: %s is above sync_interval %s, so lines would wait longer for the disk than that promises", cfg.flushInterval(), cfg.SyncInterval)
	}
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"flush_interval", cfg.flushInterval()},
		{"timeout", cfg.Timeout},
		{"rotation::max_age", cfg.Rotation.MaxAge},
		{"retention::max_age", cfg.Retention.MaxAge},
	} {
		if d.value < 0 {
			add("%s: must not be negative, is %s", d.key, d.value)
		}
	}
	if cfg.Timeout > 0 && cfg.flushInterval() >= cfg.Timeout {
		add("flush_interval: %s is not below timeout %s, so no request would be answered in time", cfg.flushInterval(), cfg.Timeout)
	}
	for _, b := range []struct {
		key   string
		value Bytes
	}{
		{"rotation::max_bytes", cfg.Rotation.MaxBytes},
		{"retention::max_total_bytes", cfg.Retention.MaxTotalBytes},
		{"min_free_bytes", cfg.MinFreeBytes},
	} {
		if b.value < 0 {
			add("%s: must not be negative, is %d", b.key, b.value)
		}
	}
	if cfg.Rotation.MaxBackups < 0 {
		add("rotation::max_backups: must not be negative, is %d", cfg.Rotation.MaxBackups)
	}
	checkMode(add, "file_mode", cfg.FileMode, 0o600)
	checkMode(add, "directory_mode", cfg.DirectoryMode, 0o700)
	if cfg.QueueConfig.HasValue() && !cfg.RetryConfig.Enabled {
		errs = append(errs, errQueueWithoutRetries)
	}
	return errors.Join(errs...)
}

func oneOf[T ~string](add func(string, ...any), key string, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		add("%s: %q is not one of %q", key, value, allowed)
	}
}

func checkMode(add func(string, ...any), key string, mode FileMode, owner FileMode) {
	if mode > 0o777 {
		add("%s: %#o is not a permission; write it in octal and quoted, like \"%#o\"", key, mode, owner|0o040)
	} else if mode&owner != owner {
		add("%s: %#o keeps its owner out; it must include %#o", key, mode, owner)
	}
}

// template is the path, split.
func (cfg *Config) template() (*pathTemplate, error) { return parsePath(cfg.Path, cfg.Compression) }

// flushInterval is the one that is set, or the default of the compression.
func (cfg *Config) flushInterval() time.Duration {
	switch {
	case cfg.FlushInterval != nil:
		return *cfg.FlushInterval
	case cfg.Compression == CompressionNone:
		return 0
	default:
		return compressedFlushInterval
	}
}

const compressedFlushInterval = 200 * time.Millisecond

// members are the parts of the identity that lines name.
func (cfg *Config) members() identityMembers {
	return identityMembers{
		run:     slices.Contains(cfg.Identity, "run"),
		rank:    slices.Contains(cfg.Identity, "rank"),
		service: slices.Contains(cfg.Identity, "service"),
	}
}

// FileMode is a permission, written in octal: "0640".
type FileMode uint32

func (m FileMode) mode() os.FileMode { return os.FileMode(m) }

// UnmarshalText reads octal digits.
func (m *FileMode) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(text), "0o"), 8, 32)
	if err != nil {
		return fmt.Errorf("%q is not a permission in octal, like \"0640\"", text)
	}
	*m = FileMode(n)
	return nil
}

// MarshalText writes octal digits.
func (m FileMode) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%#o", uint32(m)), nil }

// Bytes is a number of bytes, written as such or with a unit: 268435456, 256MiB, 1GB.
type Bytes int64

// UnmarshalText reads a number of bytes with a unit or without.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > 1<<62 {
		return fmt.Errorf("%q is not a number of bytes, like 268435456 or 256MiB", text)
	}
	*b = Bytes(n)
	return nil
}
