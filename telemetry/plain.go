// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry // import "github.com/lenscol/lenscol/telemetry"

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// plainCore keeps what senders and backends wrote from moving the cursor of a terminal that shows the log. zap escapes ASCII's control characters in
// fields; it leaves those beyond, which terminals obey as well, line separators, and what turns the direction of writing. In messages it leaves them all,
// and debug's are spans as they came.
type plainCore struct{ zapcore.Core }

func (c plainCore) With(fields []zapcore.Field) zapcore.Core {
	return plainCore{c.Core.With(plainFields(fields))}
}

func (c plainCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Core.Check(entry, nil) == nil { // Level, and sampling.
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c plainCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	entry.Message = plain(entry.Message, func(r rune) bool { return moves(r) || unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' })
	return c.Core.Write(entry, plainFields(fields))
}

// plainFields are the fields with plain texts, themselves where all are.
func plainFields(fields []zapcore.Field) []zapcore.Field {
	copied := false
	for i, field := range fields {
		text := ""
		switch field.Type {
		case zapcore.StringType:
			text = field.String
		case zapcore.ErrorType, zapcore.StringerType:
			encoded := zapcore.NewMapObjectEncoder() // It knows what a nil pointer is.
			field.AddTo(encoded)
			text, _ = encoded.Fields[field.Key].(string)
		}
		if made := plain(text, moves); made != text {
			if !copied {
				fields, copied = slices.Clone(fields), true
			}
			fields[i] = zap.String(field.Key, made)
		}
	}
	return fields
}

func plain(text string, moves func(rune) bool) string {
	if strings.IndexFunc(text, moves) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if moves(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func moves(r rune) bool {
	return r > unicode.MaxASCII && unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
