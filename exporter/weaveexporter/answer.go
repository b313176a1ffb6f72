// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weaveexporter // import "github.com/lenscol/lenscol/exporter/weaveexporter"

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// verdict is what an answer means for the spans of its request.
type verdict uint8

const (
	taken       verdict = iota // but for those that a partial success names
	tooLarge                   // halves may pass
	suspect                    // one span may be at fault for all: halves may pass
	unavailable                // the same request may pass later
	hopeless                   // no request like it can pass
)

// answer is what became of one request.
type answer struct {
	verdict    verdict
	status     int           // of HTTP; 0: no answer came
	drop       string        // reason to count dropped spans under, where spans are dropped for this answer
	text       string        // why, for people: bounded, without secrets
	err        error         // why, for programs: its text is not to be shown; nil: text is all
	rejected   int           // spans, of a request that was taken
	retryAfter time.Duration // what the answer asks to wait; 0: nothing
}

// failure is an answer as an error.
type failure struct{ answer }

func (f failure) Error() string { return f.text }
func (f failure) Unwrap() error { return f.err }

// The reasons that dropped spans are counted under, beside those of internal/shape.
const (
	dropUnauthorized = "unauthorized"
	dropForbidden    = "forbidden"
	dropNotFound     = "not_found"
	dropRefused      = "refused"
	dropTooLarge     = "too_large"
	dropRetries      = "retries_exhausted"
	dropShutdown     = "shutdown"
)

const (
	maxErrorBody = 64 << 10 // bytes read of an error's body
	maxBody      = 1 << 20  // bytes read of a success's body: 20 messages with names of spans
	maxShown     = 512      // bytes of a text of Weave's in a log

	maxRetryAfter = 24 * time.Hour
)

// readAnswer reads a response and closes its body.
func readAnswer(resp *http.Response, now time.Time, clean func(string) string) answer {
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, verdict: hopeless, drop: dropRefused}
	if resp.StatusCode/100 == 2 {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
		if err != nil {
			return answer{verdict: unavailable, drop: dropRefused, text: "the answer broke off: " + clean(err.Error()), err: err}
		}
		return readSuccess(a, resp.Header.Get("Content-Type"), body, clean)
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // What can be read of it will do.
	a.text, a.err = fmt.Sprintf("HTTP status %d", a.status), status.Error(grpcCode(a.status), http.StatusText(a.status))
	if reason := clean(readReason(body)); reason != "" {
		a.text += ": " + reason
	}
	switch code := resp.StatusCode; {
	case code == http.StatusRequestEntityTooLarge:
		a.verdict, a.drop = tooLarge, dropTooLarge
	case code == http.StatusBadRequest || code == http.StatusUnprocessableEntity || code == http.StatusInternalServerError:
		a.verdict = suspect
	case code == http.StatusForbidden:
		a.verdict, a.drop = suspect, dropForbidden
	case code == http.StatusUnauthorized:
		a.drop = dropUnauthorized
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed || code == http.StatusGone:
		a.drop = dropNotFound
	case code/100 == 3:
		a.drop = dropNotFound
		a.text += ": redirected to " + clean(resp.Header.Get("Location"))
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || code >= 500:
		a.verdict, a.retryAfter = unavailable, readRetryAfter(resp.Header.Get("Retry-After"), now)
	}
	return a
}

// grpcCode is the code of gRPC for a status of HTTP after which a request may pass later.
func grpcCode(status int) codes.Code {
	switch status {
	case http.StatusTooManyRequests:
		return codes.ResourceExhausted
	case http.StatusInternalServerError:
		return codes.Internal
	}
	return codes.Unavailable
}

// readSuccess reads the body of a request that was taken: what was rejected of it all the same. A page of HTML is what another server
// says, a proxy's login or W&B's own site.
func readSuccess(a answer, contentType string, body []byte, clean func(string) string) answer {
	media, _, _ := mime.ParseMediaType(contentType)
	if media == "text/html" || media == "application/xhtml+xml" {
		a.drop, a.text = dropNotFound, fmt.Sprintf("HTTP status %d with a page of HTML: it is not Weave that answers", a.status)
		return a
	}
	a.verdict, a.drop = taken, ""
	var message string
	a.rejected, message = readPartialSuccess(media, body)
	a.text = clean(message)
	return a
}

// partialSuccess is what a taken request may be answered with: in JSON nested, as OTLP has it, or flat, as the agents' endpoint has it; in
// snake case, as Weave writes, or in camel case, as OTLP/JSON does.
type partialSuccess struct {
	RejectedSnake count  `json:"rejected_spans"`
	RejectedCamel count  `json:"rejectedSpans"`
	MessageSnake  string `json:"error_message"`
	MessageCamel  string `json:"errorMessage"`
}

// count is a JSON number, or one in quotes, as OTLP/JSON writes 64 bits.
type count int

func (c *count) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseFloat(string(bytes.Trim(text, `"`)), 64)
	if err == nil && n > 0 {
		*c = count(min(n, 1<<30))
	}
	return nil // Anything else is no count.
}

// readPartialSuccess returns how many spans were rejected, and what Weave says of them. A body that it does not understand rejects none:
// the status said that the request was taken.
func readPartialSuccess(media string, body []byte) (rejected int, message string) {
	if media == "application/x-protobuf" {
		response := ptraceotlp.NewExportResponse()
		if response.UnmarshalProto(body) != nil {
			return 0, ""
		}
		return int(min(max(response.PartialSuccess().RejectedSpans(), 0), 1<<30)), response.PartialSuccess().ErrorMessage()
	}
	var said struct {
		partialSuccess
		NestedSnake partialSuccess `json:"partial_success"`
		NestedCamel partialSuccess `json:"partialSuccess"`
	}
	_ = json.Unmarshal(body, &said) // What can be read of it holds.
	for _, p := range []partialSuccess{said.partialSuccess, said.NestedSnake, said.NestedCamel} {
		rejected = max(rejected, int(p.RejectedSnake), int(p.RejectedCamel))
		for _, text := range []string{p.MessageSnake, p.MessageCamel} {
			if message == "" {
				message = text
			}
		}
	}
	return rejected, message
}

// readReason is what an error's body says: {"reason": …} is Weave's form.
func readReason(body []byte) string {
	var said map[string]any
	if json.Unmarshal(body, &said) == nil {
		for _, key := range []string{"reason", "detail", "message", "error", "error_message"} {
			switch v := said[key].(type) {
			case nil:
			case string:
				return v
			default:
				text, _ := json.Marshal(v) // It was read from JSON.
				return string(text)
			}
		}
	}
	return string(body)
}

// readRetryAfter reads seconds or a date (RFC 9110 §10.2.3); what is neither, or past, asks for nothing.
func readRetryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	var wait time.Duration
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 { // Not for NaN.
		wait = time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	} else if date, err := http.ParseTime(text); err == nil {
		wait = date.Sub(now)
	}
	return min(max(wait, 0), maxRetryAfter)
}
