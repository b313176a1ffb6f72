// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package repair // import "github.com/lenscol/lenscol/sdk/telemetry/internal/repair"

import (
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

// Records are batch in UTF-8, all but their resource and scope, which a record cannot be given; [Loggers] is for the latter.
func Records(batch []sdklog.Record) []sdklog.Record {
	batch, _ = list(batch, record)
	return batch
}

func record(r sdklog.Record) (mended sdklog.Record, bad bool) {
	body, badBody := logValue(r.Body())
	severity, badSeverity := Text(r.SeverityText())
	event, badEvent := Text(r.EventName())
	badAttributes := false
	r.WalkAttributes(func(kv log.KeyValue) bool {
		_, badAttributes = logKeyValue(kv)
		return !badAttributes
	})
	if !badBody && !badSeverity && !badEvent && !badAttributes {
		return r, false
	}
	r = r.Clone()
	r.SetBody(body)
	r.SetSeverityText(severity)
	r.SetEventName(event)
	if badAttributes {
		kvs := make([]log.KeyValue, 0, r.AttributesLen())
		r.WalkAttributes(func(kv log.KeyValue) bool {
			kv, _ = logKeyValue(kv)
			kvs = append(kvs, kv)
			return true
		})
		r.SetAttributes(kvs...)
	}
	return r, true
}

func logKeyValue(kv log.KeyValue) (mended log.KeyValue, bad bool) {
	key, badKey := Text(kv.Key)
	v, badValue := logValue(kv.Value)
	return log.KeyValue{Key: key, Value: v}, badKey || badValue
}

func logValue(v log.Value) (mended log.Value, bad bool) {
	switch v.Kind() {
	case log.KindString:
		if text, bad := Text(v.AsString()); bad {
			return log.StringValue(text), true
		}
	case log.KindSlice:
		if values, bad := list(v.AsSlice(), logValue); bad {
			return log.SliceValue(values...), true
		}
	case log.KindMap:
		if kvs, bad := list(v.AsMap(), logKeyValue); bad {
			return log.MapValue(kvs...), true
		}
	}
	return v, false
}

// Loggers is p with the scopes of its loggers in UTF-8. It is a pointer and can be compared.
func Loggers(p log.LoggerProvider) log.LoggerProvider { return &loggers{p} }

type loggers struct{ log.LoggerProvider }

// Logger implements log.LoggerProvider.
func (p *loggers) Logger(name string, opts ...log.LoggerOption) log.Logger {
	name, _ = Text(name)
	c := log.NewLoggerConfig(opts...)
	version, _ := Text(c.InstrumentationVersion())
	url, _ := Text(c.SchemaURL())
	attributes, _ := set(c.InstrumentationAttributes())
	return p.LoggerProvider.Logger(name, log.WithInstrumentationVersion(version), log.WithSchemaURL(url),
		log.WithInstrumentationAttributeSet(attributes))
}
