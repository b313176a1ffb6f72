// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"google.golang.org/grpc/mem"
)

// GetHTTPHandler puts the gate in front of the receiver's handlers. There a request has been authorised, and its body
// comes decompressed and ends with an error where it is over the receiver's limit.
func (g *gate) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(next, w, r) }), nil
	}, nil
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// serve sifts the protobuf requests of the three signals. All others pass as they are, JSON among them.
func (g *gate) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	signal, ok := g.paths[r.URL.Path]
	if !ok || r.Method != http.MethodPost || !isProtobuf(r.Header) {
		next.ServeHTTP(w, r)
		return
	}
	body := bodies.Get().(*bytes.Buffer)
	body.Reset()
	defer func() {
		if body.Cap() <= maxKept {
			bodies.Put(body)
		}
	}()
	if _, err := body.ReadFrom(r.Body); err != nil {
		// The receiver reads what could be read, and then the same error.
		r.Body = replay{io.MultiReader(bytes.NewReader(body.Bytes()), failing{err}), r.Body}
		next.ServeHTTP(w, r)
		return
	}
	g.sift(signal, mem.BufferSlice{mem.SliceBuffer(body.Bytes())}, func(kept []byte, o outcome) {
		answer := &answer{ResponseWriter: w}
		accepted := false
		defer func() { g.settle(r.Context(), o, accepted) }()
		r.Body = replay{bytes.NewReader(kept), r.Body}
		r.ContentLength = int64(len(kept))
		next.ServeHTTP(answer, r)
		accepted = answer.status == 0 || answer.status/100 == 2
	})
}

// isProtobuf reports whether the receiver takes the body for protobuf, and nothing has encoded it.
func isProtobuf(h http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && mediaType == "application/x-protobuf" && h.Get("Content-Encoding") == ""
}

// replay is a body that was read before.
type replay struct {
	io.Reader
	io.Closer
}

// failing is a reader that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// answer sees the status of an answer.
type answer struct {
	http.ResponseWriter
	status int // 0: none written, which is 200
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
