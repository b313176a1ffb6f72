// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package rankgate // import "github.com/lenscol/lenscol/extension/rankgate"

// The messages of OTLP, as far as it takes to say whether pdata decodes them: a field of a known number must have its
// wire type, an id its length. This is the OTLP of pdata v1.64; TestSchemaIsPdatas compares every field of it.

// action says what to do with a field: skip over it, refuse it, or, from firstMessage on, read the message in it.
type action uint8

const (
	refuse action = iota
	varint
	fixed64
	fixed32
	length     // text, bytes
	group      // of an unknown field
	traceID    // 16 bytes or none
	spanID     // 8 bytes or none
	fixed64s   // packed
	varints    // packed
	code       // varint: status code of a span, severity of a log record
	unassigned // no action: a field number that the message does not have
	firstMessage
)

// message is the action of its kind.
type message = action

const (
	mScopeSpans message = firstMessage + iota
	mScopeMetrics
	mScopeLogs
	mSpan
	mLogRecord
	mMetric
	mGauge
	mSum
	mHistogram
	mExponentialHistogram
	mSummary
	mNumberPoint
	mHistogramPoint
	mExponentialHistogramPoint
	mSummaryPoint
	mResource
	mScope
	mEntityRef
	mKeyValue
	mAnyValue
	mArray
	mMap
	mEvent
	mLink
	mStatus
	mExemplar
	mBuckets
	mQuantile
	endMessages
)

// schema has the fields of each message by number. Wire types follow from the action; a packed field may come unpacked.
var schema = [endMessages]map[int]action{
	mScopeSpans:   {1: mScope, 2: mSpan, 3: length},
	mScopeMetrics: {1: mScope, 2: mMetric, 3: length},
	mScopeLogs:    {1: mScope, 2: mLogRecord, 3: length},

	mSpan: {
		1: traceID, 2: spanID, 3: length, 4: spanID, 5: length, 6: varint, 7: fixed64, 8: fixed64, 9: mKeyValue, 10: varint,
		11: mEvent, 12: varint, 13: mLink, 14: varint, 15: mStatus, 16: fixed32,
	},
	mEvent:  {1: fixed64, 2: length, 3: mKeyValue, 4: varint},
	mLink:   {1: traceID, 2: spanID, 3: length, 4: mKeyValue, 5: varint, 6: fixed32},
	mStatus: {2: length, 3: code},

	mLogRecord: {
		1: fixed64, 2: code, 3: length, 5: mAnyValue, 6: mKeyValue, 7: varint, 8: fixed32, 9: traceID, 10: spanID,
		11: fixed64, 12: length,
	},

	mMetric: {
		1: length, 2: length, 3: length, 5: mGauge, 7: mSum, 9: mHistogram, 10: mExponentialHistogram, 11: mSummary,
		12: mKeyValue,
	},
	mGauge:                {1: mNumberPoint},
	mSum:                  {1: mNumberPoint, 2: varint, 3: varint},
	mHistogram:            {1: mHistogramPoint, 2: varint},
	mExponentialHistogram: {1: mExponentialHistogramPoint, 2: varint},
	mSummary:              {1: mSummaryPoint},
	mNumberPoint:          {2: fixed64, 3: fixed64, 4: fixed64, 5: mExemplar, 6: fixed64, 7: mKeyValue, 8: varint},
	mHistogramPoint: {
		2: fixed64, 3: fixed64, 4: fixed64, 5: fixed64, 6: fixed64s, 7: fixed64s, 8: mExemplar, 9: mKeyValue, 10: varint,
		11: fixed64, 12: fixed64,
	},
	mExponentialHistogramPoint: {
		1: mKeyValue, 2: fixed64, 3: fixed64, 4: fixed64, 5: fixed64, 6: varint, 7: fixed64, 8: mBuckets, 9: mBuckets,
		10: varint, 11: mExemplar, 12: fixed64, 13: fixed64, 14: fixed64,
	},
	mSummaryPoint: {2: fixed64, 3: fixed64, 4: fixed64, 5: fixed64, 6: mQuantile, 7: mKeyValue, 8: varint},
	mBuckets:      {1: varint, 2: varints},
	mQuantile:     {1: fixed64, 2: fixed64},
	mExemplar:     {2: fixed64, 3: fixed64, 4: spanID, 5: traceID, 6: fixed64, 7: mKeyValue},

	mResource:  {1: mKeyValue, 2: varint, 3: mEntityRef},
	mEntityRef: {1: length, 2: length, 3: length, 4: length},
	mScope:     {1: length, 2: length, 3: mKeyValue, 4: varint},
	mKeyValue:  {1: length, 2: mAnyValue, 3: varint},
	mAnyValue:  {1: length, 2: varint, 3: varint, 4: fixed64, 5: mArray, 6: mMap, 7: length, 8: varint},
	mArray:     {1: mAnyValue},
	mMap:       {1: mKeyValue},
}

// Field numbers that are read.
const (
	fieldResourceItems = 1 // of a request: ResourceSpans, ResourceMetrics, ResourceLogs

	fieldResource         = 1 // of those
	fieldScope            = 2
	fieldSchemaURL        = 3
	fieldScopeOfOldSender = 1000 // what fieldScope was called before OTLP 0.15; pdata reads it where there is no fieldScope

	fieldItem = 2 // of ScopeSpans and ScopeLogs

	fieldSpanName      = 5
	fieldSpanStart     = 7
	fieldSpanEnd       = 8
	fieldSpanAttribute = 9
	fieldSpanStatus    = 15
	fieldStatusCode    = 3
	fieldLogSeverity   = 2

	fieldKey    = 1 // of an attribute
	fieldValue  = 2
	fieldBool   = 2 // of a value
	fieldInt    = 3
	fieldDouble = 4
	fieldsValue = 8 // the last one
)

const (
	wireVarint     = 0
	wireFixed64    = 1
	wireLen        = 2
	wireStartGroup = 3
	wireEndGroup   = 4
	wireFixed32    = 5
)

// tableFields is how many field numbers a table has; all that the schema knows are below.
const tableFields = 32

// table is the action for a field by number and wire type: number<<3 | wire type.
type table [tableFields << 3]action

// tables are the schema in that form.
var tables = func() (out [endMessages]table) {
	for m, fields := range schema {
		for number := 1; number < tableFields; number++ {
			known, ok := fields[number]
			if !ok {
				known = unassigned
			}
			for wire := range 8 {
				out[m][number<<3|wire] = actionFor(known, wire)
			}
		}
	}
	return out
}()

// actionFor is the action for a field of a wire type: an unknown field is skipped, a known one must have its own type.
func actionFor(known action, wire int) action {
	asUnknown := [8]action{varint, fixed64, length, group, refuse, fixed32, refuse, refuse}[wire]
	want := wireLen
	switch known {
	case unassigned:
		return asUnknown
	case varint, code:
		want = wireVarint
	case fixed64:
		want = wireFixed64
	case fixed32:
		want = wireFixed32
	}
	switch {
	case wire == want:
		return known
	case known == fixed64s && wire == wireFixed64, known == varints && wire == wireVarint:
		return asUnknown // not packed
	default:
		return refuse
	}
}
