# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

"""Reads a trace with Perfetto's own code and prints what it holds, as one JSON object.

    judge.py TRACE             the classes of the PyPI package, and its rules of slices in Python
    judge.py --processor TRACE the trace processor, whose binary the package fetches; exit code 3: it cannot be had
"""

import collections
import json
import sys


def read(path):
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

    trace = pb.Trace()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    errors = []
    tracks, names, events, last = {}, None, [], {}
    for packet in trace.packet:
        if packet.sequence_flags & pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            names = {}
        if packet.sequence_flags & pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE and names is None:
            errors.append("needs state that was never there")
        for name in packet.interned_data.event_names:
            names[name.iid] = name.name
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid in tracks:
                errors.append(f"track {track.uuid} twice")
            if track.HasField("parent_uuid") and track.parent_uuid not in tracks:
                errors.append(f"track {track.uuid} without its parent")
            tracks[track.uuid] = track
        if packet.HasField("track_event"):
            event = packet.track_event
            if event.track_uuid not in tracks:
                errors.append(f"no track {event.track_uuid}")
            name = event.name
            if event.HasField("name_iid"):
                name = names.get(event.name_iid)
                if name is None:
                    errors.append(f"no name {event.name_iid}")
            events.append((packet.timestamp, len(events), event, name))
    events.sort(key=lambda e: e[:2])  # As the trace processor does: by time, of one time as they stand in the file.

    slices, instants, counts = [], 0, 0
    open_, flows = collections.defaultdict(list), collections.Counter()
    for at, _, event, name in events:
        stack = open_[event.track_uuid]
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            flows.update(event.flow_ids)
            slices.append([event.track_uuid, name, at, None, len(stack)])
            stack.append(slices[-1])
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            if stack:
                stack.pop()[3] = at
            else:
                errors.append(f"end at {at} without a begin")
        elif event.type == pb.TrackEvent.TYPE_INSTANT:
            instants += 1
        elif event.type == pb.TrackEvent.TYPE_COUNTER:
            counts += 1
    errors += [f"{s[1]} never ends" for stack in open_.values() for s in stack]
    errors += check_nesting(slices)
    return {
        "errors": errors[:20],
        "processes": [t.process.process_name for t in tracks.values() if t.HasField("process")],
        "threads": sum(t.HasField("thread") for t in tracks.values()),
        "slices": dict(collections.Counter(s[1] for s in slices)),
        "instants": instants,
        "counts": counts,
        "flows": sum(n == 2 for n in flows.values()),
        "loose_flows": sum(n != 2 for n in flows.values()),
        "deepest": max((s[4] for s in slices), default=-1) + 1,
    }


def check_nesting(slices):
    """Slices of a track, by their times alone: each lies in another one or beside it."""
    by_track = collections.defaultdict(list)
    for track, name, begin, end, _ in slices:
        by_track[track].append((begin, -(end or begin), name))
    for of in by_track.values():
        ends = []
        for begin, end, name in sorted(of):
            while ends and ends[-1] <= begin and -end > ends[-1]:
                ends.pop()
            if ends and -end > ends[-1]:
                yield f"{name} at {begin} outlasts what it lies in"
            ends.append(-end)


def process(path):
    from perfetto.trace_processor import TraceProcessor

    try:
        processor = TraceProcessor(trace=path)
    except Exception as e:  # noqa: BLE001: whatever kept the binary away
        print(f"no trace processor: {e}", file=sys.stderr)
        sys.exit(3)

    def rows(sql):
        return [row.__dict__ for row in processor.query(sql)]

    def one(sql):
        return rows(sql)[0]["n"]

    return {
        "errors": [f"{r['name']}: {r['value']}" for r in rows("select name, value from stats where severity in ('error', 'data_loss') and value > 0")],
        "processes": [r["name"] for r in rows("select name from process where pid > 0 order by pid")],
        "slices": {r["name"]: r["n"] for r in rows("select name, count() n from slice where dur > 0 group by name")},
        "counts": one("select count() n from counter"),
        "flows": one("select count() n from flow"),
        "open": one("select count() n from slice where dur < 0"),
    }


if sys.argv[1] == "--processor":
    print(json.dumps(process(sys.argv[2])))
else:
    print(json.dumps(read(sys.argv[1])))
