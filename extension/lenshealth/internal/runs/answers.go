// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package runs // import "github.com/lenscol/lenscol/extension/lenshealth/internal/runs"

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
)

// freshFor is how long an answer is given to whoever asks the same.
const freshFor = time.Second

// maxAnswers is how many answers are kept.
const maxAnswers = 8

// answers makes each answer once a second at most, one at a time, however many ask.
type answers struct {
	now     func() time.Time
	changes func() uint64 // Model.Changes
	mu      sync.Mutex
	kept    map[question]*answer
}

// answer is JSON, and the same compressed. It does not change.
type answer struct {
	at      time.Time
	changes uint64 // all up to there are in it
	plain   []byte
	small   func() []byte
}

// to is the answer to a question; nil where make says that there is none.
func (a *answers) to(q question, make func() any) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	for other, kept := range a.kept {
		if now.Sub(kept.at) >= freshFor {
			delete(a.kept, other)
		}
	}
	if kept := a.kept[q]; kept != nil {
		return kept
	}
	changes := a.changes()
	value := make()
	if value == nil {
		return nil
	}
	plain, err := json.Marshal(value)
	if err != nil { // All of it are numbers, texts and lists of these.
		return nil
	}
	made := &answer{at: now, changes: changes, plain: plain, small: sync.OnceValue(func() []byte { return compressed(plain) })}
	if len(a.kept) < maxAnswers {
		a.kept[q] = made
	}
	return made
}

func compressed(plain []byte) []byte {
	var small bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&small, gzip.BestSpeed) // It refuses levels that are none.
	_, _ = zip.Write(plain)                               // A buffer takes all.
	_ = zip.Close()
	return small.Bytes()
}

func (a *answer) serve(w http.ResponseWriter, r *http.Request) {
	body := a.plain
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", "Accept-Encoding")
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		w.Header().Set("Content-Encoding", "gzip")
		body = a.small()
	}
	_, _ = w.Write(body) // Who asked may have gone.
}

// takesGzip reads Accept-Encoding: gzip is named, and not with weight 0.
func takesGzip(headers []string) bool {
	for _, header := range headers {
		for encoding := range strings.SplitSeq(header, ",") {
			name, weight, _ := strings.Cut(encoding, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				weight = strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.")
				return weight != "" || !strings.Contains(encoding, ";")
			}
		}
	}
	return false
}
