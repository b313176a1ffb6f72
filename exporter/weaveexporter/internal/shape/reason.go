// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package shape

// Reason says why something was changed or dropped. docs/weave.md lists them; they are values of the counters' `reason`.
type Reason uint8

// What is changed.
const (
	InvalidUTF8    Reason = iota // a text was not UTF-8
	EmptyValue                   // a value without a type
	KeyConflict                  // one key stood on the path of another
	RepeatedKey                  // a key was there twice
	LongKey                      // a key was too long or had too many parts
	DeepValue                    // arrays and maps in each other, too deep
	JSONText                     // a text that Weave would decode, and fail
	Reference                    // a text that Weave would take for a reference to one of its objects
	TypedKey                     // a key of Weave's with a value of another type
	NonFinite                    // NaN or infinite where Weave writes JSON
	BytesValue                   // bytes where Weave writes JSON
	SpanKind                     // no kind of OTLP's
	StatusCode                   // no status of OTLP's
	StatusMessage                // an error without a message
	Timestamp                    // an end before the start
	SpanName                     // a name that Weave would refuse or shorten
	NameTemplate                 // a name with numbers in it
	RunID                        // a run id that Weave would ignore, or of another project
	Step                         // a step that Weave would refuse, or not store
	Truncated                    // a value was cut
	DuplicateID                  // a span id of two spans
	droppedReasons               // from here on: why spans are dropped
)

// Why spans are dropped.
const (
	Unroutable   Reason = droppedReasons + iota // neither the resource nor the config says a project
	NoID                                        // no trace id or no span id
	RepeatedSpan                                // the same span twice in a batch
	TooLarge                                    // too large even without its attributes
	Reasons                                     // how many there are
)

var reasonNames = [Reasons]string{
	"invalid_utf8", "empty_value", "key_conflict", "repeated_key", "long_key", "deep_value", "json_text", "reference", "typed_key", "non_finite", "bytes_value",
	"span_kind", "status_code", "status_message", "timestamp", "span_name", "name_template", "run_id", "step", "truncated", "duplicate_id",
	"unroutable", "no_id", "repeated_span", "too_large",
}

func (r Reason) String() string { return reasonNames[r] }

// Counts counts by reason. It has no entry beyond [Reasons].
type Counts [Reasons]int

// Sum is the sum over all reasons.
func (c *Counts) Sum() (n int) {
	for _, x := range c {
		n += x
	}
	return n
}
