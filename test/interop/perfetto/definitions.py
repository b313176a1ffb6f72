# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0

"""Writes the part of Perfetto's proto definitions that internal/perfetto writes, as a FileDescriptorSet.

    $(test/venv.sh perfetto perfetto==0.59.1)/python test/interop/perfetto/definitions.py > internal/perfetto/testdata/trace.binpb

Messages are whole, but for the fields of a TracePacket and a TrackEvent whose messages belong to other sources of data.
"""

import sys

from google.protobuf import descriptor_pb2
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as trace

KEEP = {
    "Trace", "TracePacket", "TrackEvent", "TrackDescriptor", "ProcessDescriptor", "ThreadDescriptor", "CounterDescriptor", "DebugAnnotation",
    "InternedData", "EventCategory", "EventName", "DebugAnnotationName", "ClockSnapshot", "TracePacketDefaults", "TrackEventDefaults",
    "BuiltinClock",
}

source = descriptor_pb2.FileDescriptorProto()
trace.DESCRIPTOR.CopyToProto(source)

out = descriptor_pb2.FileDescriptorProto(name="perfetto_trace.proto", package=source.package, syntax=source.syntax)
for enum in source.enum_type:
    if enum.name in KEEP:
        out.enum_type.add().CopyFrom(enum)


def kept(field):
    """Whether what a field is of is kept: a scalar, a message of KEEP, or one that stands in its own message."""
    if not field.type_name:
        return True
    name = field.type_name.removeprefix("." + source.package + ".")
    return name.split(".")[0] in KEEP


def prune(message):
    fields = [f for f in message.field if kept(f)]
    oneofs = sorted({f.oneof_index for f in fields if f.HasField("oneof_index")})
    names = [message.oneof_decl[i] for i in oneofs]
    del message.field[:], message.oneof_decl[:], message.extension_range[:], message.extension[:]
    for f in fields:
        if f.HasField("oneof_index"):
            f.oneof_index = oneofs.index(f.oneof_index)
        message.field.add().CopyFrom(f)
    for o in names:
        message.oneof_decl.add().CopyFrom(o)
    for nested in message.nested_type:
        prune(nested)


for message in source.message_type:
    if message.name in KEEP:
        copy = out.message_type.add()
        copy.CopyFrom(message)
        prune(copy)

sys.stdout.buffer.write(descriptor_pb2.FileDescriptorSet(file=[out]).SerializeToString())
