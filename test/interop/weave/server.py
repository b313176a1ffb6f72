# Copyright The lenscol Authors
# SPDX-License-Identifier: Apache-2.0
"""Weave's own ingest code (PyPI weave[trace_server]==0.53.12) behind a loopback HTTP port.

Each request goes through both trace servers of the package: the one of production, ClickHouseTraceServer, whose rows are kept instead
of being sent to a database, and InMemoryTraceServer, from which calls are listed. Before each stands ExternalTraceServer, which makes
references to Weave's objects those of the database, and back. The answer is that of the first which refuses.
The HTTP layer itself is not in the package: routing by wandb.entity and wandb.project is written here after W&B's documentation.

It prints its port and serves until stdin ends.

    POST .../otel/v1/traces, .../agents/otel/v1/traces   OTLP/HTTP, protobuf, gzip or none
    GET /calls?project=entity/project                    calls as Weave lists them
    GET /spans?project=entity/project                    rows of the Agents view
    GET /requests                                        path, status and answer of each POST
    GET /size                                            how many rows the two lists have, for all projects
"""

import base64
import collections
import gzip
import http.server
import json
import logging
import os
import sys
import threading
import types
import urllib.parse

# Without it, an import fetches prices from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


class _Absent(types.ModuleType):
    """A module that the wheel lacks and ingest never uses."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for _name in ("weave.trace_server.model_providers", "weave.trace_server.model_providers.model_providers"):
    sys.modules[_name] = _Absent(_name)

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from weave.trace_server import clickhouse_trace_server_batched as batched
from weave.trace_server import trace_server_interface as tsi
from weave.trace_server.agents import clickhouse as agents
from weave.trace_server.errors import ProjectNotFound, handle_server_exception
from weave.trace_server.external_to_internal_trace_server_adapter import ExternalTraceServer, IdConverter
from weave.trace_server.in_memory_trace_server import InMemoryTraceServer
from weave.trace_server.project_version.types import WriteTarget

batched.get_project_retention_days = agents.get_project_retention_days = lambda *_: 0


class Database:
    """What ClickHouse would be given: rows by table, each a dict by column."""

    def __init__(self):
        self.tables = collections.defaultdict(list)

    def insert(self, table, data, column_names, settings=None):
        json.dumps(data, ensure_ascii=False, default=str).encode()  # The driver writes UTF-8 too.
        self.tables[table] += [dict(zip(column_names, row, strict=True)) for row in data]
        return types.SimpleNamespace(summary={}, query_id=lambda: "")


class Production(batched.ClickHouseTraceServer):
    """Weave's production server, up to the database."""

    ch_client = Database()
    kafka_producer = None

    @property
    def table_routing_resolver(self):
        return types.SimpleNamespace(resolve_v2_write_target=lambda *_: WriteTarget.CALLS_COMPLETE)

    def objs_query(self, req):
        return tsi.ObjQueryRes(objs=[])


def internal(name):
    """Weave's internal id of a user, or of a project, "entity/project": base64, of hex so that it has no slash."""
    return base64.b64encode(name.encode().hex().encode()).decode()


def external(internal_id):
    return bytes.fromhex(base64.b64decode(internal_id).decode()).decode()


class Ids(IdConverter):
    """W&B's names and Weave's internal ids. A project exists once spans were sent to it."""

    projects = set()

    def ext_to_int_project_id(self, project_id):
        if project_id not in self.projects:
            raise ProjectNotFound(f"project {project_id} not found")
        return internal(project_id)

    def int_to_ext_project_id(self, project_id):
        return next((p for p in self.projects if internal(p) == project_id), None)

    def ext_to_int_run_id(self, run_id):
        project, _, run = run_id.rpartition("/")
        return f"{internal(project)}:{run}"

    def int_to_ext_run_id(self, run_id):
        project, _, run = run_id.partition(":")
        return f"{external(project)}/{run}"

    def ext_to_int_user_id(self, user_id):
        return internal(user_id)

    def int_to_ext_user_id(self, user_id):
        return external(user_id)


class Agents:
    """The part of a trace server that the agents endpoint uses."""

    handler = agents.AgentWriteHandler(Production.ch_client)

    def genai_otel_export(self, req, **_):
        return self.handler.insert_otel_spans(req)[0]


memory = InMemoryTraceServer()
calls_servers = [ExternalTraceServer(server, Ids()) for server in (Production(host="none"), memory)]
agents_server = ExternalTraceServer(Agents(), Ids())
requests = []
lock = threading.Lock()


def by_project(body):
    """The resource spans of a request by "entity/project"; those that name none are dropped."""
    projects = collections.defaultdict(list)
    for spans in ExportTraceServiceRequest.FromString(body).resource_spans:
        names = {a.key: a.value.string_value for a in spans.resource.attributes}
        entity, project = names.get("wandb.entity"), names.get("wandb.project")
        if entity and project:
            Ids.projects.add(f"{entity}/{project}")
            processed = tsi.ProcessedResourceSpans(entity=entity, project=project, run_id=None, resource_spans=spans)
            projects[f"{entity}/{project}"].append(processed)
    return projects


def export_calls(body):
    """Ingests as /otel/v1/traces does; returns the body of the answer."""
    partial = None
    for project, processed in by_project(body).items():
        for server in calls_servers:
            req = tsi.OTelExportReq(project_id=project, processed_spans=processed, wb_user_id="user")
            partial = server.otel_export(req).partial_success or partial
    return {"partial_success": partial and partial.model_dump()}


def export_spans(body):
    """Ingests as /agents/otel/v1/traces does; returns the body of the answer."""
    answer = {"accepted_spans": 0, "rejected_spans": 0, "error_message": ""}
    for project, processed in by_project(body).items():
        res = agents_server.genai_otel_export(
            agents.GenAIOTelExportReq(project_id=project, processed_spans=processed, wb_user_id="user"),
            enable_llm_powered_features=False,
        )
        answer["accepted_spans"] += res.accepted_spans
        answer["rejected_spans"] += res.rejected_spans
        answer["error_message"] = res.error_message or answer["error_message"]
    return answer


def listing(url):
    """What a GET returns, or None."""
    project = urllib.parse.parse_qs(url.query).get("project", [""])[0]
    match url.path:
        case "/requests":
            return requests
        case "/size":
            return [{"/calls": len(memory._calls), "/spans": len(Production.ch_client.tables["spans"])}]
        case "/calls" if project not in Ids.projects:
            return []
        case "/calls":
            calls = calls_servers[-1].calls_query(tsi.CallsQueryReq(project_id=project)).calls
            return [json.loads(c.model_dump_json()) for c in calls]  # As they are written: in UTF-8.
        case "/spans":
            return [row for row in Production.ch_client.tables["spans"] if row["project_id"] == internal(project)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # An answer is one packet.

    def answer(self, status, content):
        body = json.dumps(content, default=str).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with lock:
            try:
                content = listing(urllib.parse.urlsplit(self.path))
                self.answer(404 if content is None else 200, content)
            except Exception as e:
                self.answer(500, {"reason": f"{type(e).__name__}: {e}"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        exports = {"/otel/v1/traces": export_calls, "/agents/otel/v1/traces": export_spans}
        export = exports.get(self.path.removeprefix("/traces"))
        with lock:
            if export is None:
                status, content = 404, {"reason": "no such route"}
            else:
                try:
                    status, content = 200, export(body)
                except DecodeError as e:  # Weave's HTTP layer parses; what it answers then is not known.
                    status, content = 400, {"reason": str(e)}
                except Exception as e:
                    handled = handle_server_exception(e)
                    status, content = handled.status_code, handled.message | {"error": f"{type(e).__name__}: {e}"[:500]}
            requests.append({"path": self.path, "status": status, "answer": content})
        self.answer(status, content)

    def log_message(self, *_):
        pass


def main():
    logging.disable(logging.CRITICAL)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
        os._exit(0)  # Weave's servers flush to a database when they are deleted.


if __name__ == "__main__":
    main()
