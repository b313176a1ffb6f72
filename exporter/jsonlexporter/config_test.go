// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlexporter

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/internal/metadata"
)

func load(conf *confmap.Conf) (*Config, error) {
	cfg := createDefaultConfig().(*Config)
	if err := conf.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, confmap.Validate(cfg)
}

func TestDefaultConfig(t *testing.T) {
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	require.NoError(t, confmap.Validate(createDefaultConfig()))
}

func TestGoodConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config", "good.yaml"))
	require.NoError(t, err)
	loaded := map[string]*Config{}
	for key := range file.ToStringMap() {
		sub, err := file.Sub(key)
		require.NoError(t, err)
		loaded[key], err = load(sub)
		require.NoError(t, err, key)
	}
	require.Equal(t, createDefaultConfig(), loaded["jsonl"])
	require.EqualValues(t, 0o640, loaded["jsonl/octal"].FileMode)

	zeros := createDefaultConfig().(*Config)
	zeros.FlushInterval = new(time.Duration)
	zeros.MinFreeBytes, zeros.Rotation.MaxBytes = 0, 0
	require.Equal(t, zeros, loaded["jsonl/zeros"])

	all := loaded["jsonl/all"]
	require.Equal(t, RotationConfig{MaxBytes: 1 << 30, MaxAge: 24 * time.Hour, MaxBackups: 10}, all.Rotation)
	require.Equal(t, Bytes(1<<30), all.MinFreeBytes)
	require.Equal(t, []FileMode{0o600, 0o700}, []FileMode{all.FileMode, all.DirectoryMode})
	require.Equal(t, 200*time.Millisecond, *all.FlushInterval)
	require.Equal(t, time.Minute, all.RetryConfig.MaxElapsedTime)
	require.EqualValues(t, 50, all.QueueConfig.Get().QueueSize)
	require.Equal(t, identityMembers{rank: true}, all.members())

	// What print-config shows can be loaded again. Of the queue's own settings that does not hold: upstream marshals a
	// batch that is off as one that is on.
	none := configoptional.None[exporterhelper.QueueBatchConfig]()
	all.QueueConfig = none
	printed := confmap.New()
	require.NoError(t, printed.Marshal(all))
	again, err := load(printed)
	require.NoError(t, err)
	again.QueueConfig = none
	require.Equal(t, all, again)
}

func TestBadConfig(t *testing.T) {
	tests := []struct{ name, want string }{
		{"path_empty", `path: is empty`},
		{"path_folder", `does not name a file`},
		{"path_placeholder", `unknown placeholder {node}; there are {signal}, {run}`},
		{"layout", `layout: "pretty" is not one of`},
		{"resource", `resource: "none" is not one of`},
		{"identity", `identity: "node" is not one of`},
		{"sync", `sync: "sometimes" is not one of`},
		{"sync_interval", `sync_interval: must be greater than 0`},
		{"flush_interval_unit", `flush_interval: 5 has no unit; write 5s`},
		{"max_age_unit", `rotation::max_age: 24 has no unit`},
		{"timeout_negative", `timeout: must not be negative`},
		{"flush_beyond_timeout", `is not below timeout 30s`},
		{"max_bytes_negative", `rotation::max_bytes: must not be negative`},
		{"max_bytes_text", `"lots" is not a number of bytes`},
		{"max_backups_negative", `rotation::max_backups: must not be negative`},
		{"min_free_bytes_negative", `min_free_bytes: must not be negative`},
		{"file_mode_text", `"rw" is not a permission in octal`},
		{"file_mode_decimal", `is not a permission; write it in octal and quoted`},
		{"file_mode_owner", `keeps its owner out`},
		{"directory_mode_owner", `directory_mode: 0600 keeps its owner out`},
		{"queue_without_retries", `sending_queue: needs retry_on_failure::enabled`},
		{"upload_scheme", `upload: url: "ftp" is not a scheme of a store`},
		{"compression", `compression: "lz4" is not one of`},
		{"compression_level", `compression_level: 10 is not a level of gzip; it must be 0 (the default) to 9`},
		{"schedule", `rotation::schedule: "weekly" is not one of`},
		{"max_open_files", `max_open_files: must be at least 1, is 0`},
		{"max_partitions", `max_partitions: must be at least 1, is 0`},
		{"max_total_bytes", `retention::max_total_bytes: must not be negative, is -1`},
		{"retention_unit", `retention::max_age: 30 has no unit`},
		{"flush_beyond_sync", `flush_interval: 5s is above sync_interval 1s`},
		{"unknown_key", `invalid keys: rotate`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conf, err := confmaptest.LoadConf(filepath.Join("testdata", "config", "bad_"+tt.name+".yaml"))
			require.NoError(t, err)
			_, err = load(conf)
			require.ErrorContains(t, err, tt.want)
		})
	}
	files, err := filepath.Glob(filepath.Join("testdata", "config", "bad_*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(tests), "every bad file has its row")
}

func TestType(t *testing.T) {
	require.Equal(t, component.MustNewType("jsonl"), metadata.Type)
}
