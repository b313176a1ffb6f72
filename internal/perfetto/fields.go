// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package perfetto // import "github.com/lenscol/lenscol/internal/perfetto"

import "google.golang.org/protobuf/encoding/protowire"

// Fields of Perfetto's protos (protos/perfetto/trace, v59.1), of each message those that are written. testdata/trace.binpb has the
// definitions themselves, against which all that is written is checked.
const (
	tracePacket protowire.Number = 1

	packetClockSnapshot   protowire.Number = 6
	packetTimestamp       protowire.Number = 8
	packetSequence        protowire.Number = 10
	packetTrackEvent      protowire.Number = 11
	packetInterned        protowire.Number = 12
	packetFlags           protowire.Number = 13
	packetTrackDescriptor protowire.Number = 60

	snapshotClocks  protowire.Number = 1
	snapshotPrimary protowire.Number = 2
	clockID         protowire.Number = 1
	clockTimestamp  protowire.Number = 2

	trackUUID            protowire.Number = 1
	trackName            protowire.Number = 2
	trackProcessPart     protowire.Number = 3
	trackThread          protowire.Number = 4
	trackParent          protowire.Number = 5
	trackCounterPart     protowire.Number = 8
	trackSiblingRank     protowire.Number = 12
	trackProcessOrdering protowire.Number = 19
	trackThreadOrdering  protowire.Number = 20

	processPID       protowire.Number = 1
	processSortIndex protowire.Number = 3
	processName      protowire.Number = 6
	processLabels    protowire.Number = 8

	threadPID       protowire.Number = 1
	threadTID       protowire.Number = 2
	threadSortIndex protowire.Number = 3
	threadName      protowire.Number = 5

	counterUnit     protowire.Number = 3
	counterUnitName protowire.Number = 6

	eventCategoryIIDs  protowire.Number = 3
	eventAnnotations   protowire.Number = 4
	eventType          protowire.Number = 9
	eventNameIID       protowire.Number = 10
	eventTrack         protowire.Number = 11
	eventCategories    protowire.Number = 22
	eventName          protowire.Number = 23
	eventCounterValue  protowire.Number = 30
	eventCounterDouble protowire.Number = 44
	eventFlows         protowire.Number = 47

	annotationNameIID protowire.Number = 1
	annotationBool    protowire.Number = 2
	annotationInt     protowire.Number = 4
	annotationDouble  protowire.Number = 5
	annotationString  protowire.Number = 6
	annotationName    protowire.Number = 10
	annotationDict    protowire.Number = 11
	annotationArray   protowire.Number = 12

	internedCategories      protowire.Number = 1
	internedNames           protowire.Number = 2
	internedAnnotationNames protowire.Number = 3
	internedIID             protowire.Number = 1
	internedName            protowire.Number = 2
)

// Values of Perfetto's enums.
const (
	typeSliceBegin = 1
	typeSliceEnd   = 2
	typeInstant    = 3
	typeCounter    = 4

	flagStateCleared = 1 // SEQ_INCREMENTAL_STATE_CLEARED: what was interned before is forgotten
	flagNeedsState   = 2 // SEQ_NEEDS_INCREMENTAL_STATE

	clockRealtime = 1 // nanoseconds since 1970
	clockBoottime = 6 // what timestamps are of unless they say otherwise

	unitTimeNS    = 1
	unitSizeBytes = 3

	orderingExplicit = 1 // by sibling_order_rank
)
