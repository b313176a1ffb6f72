// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package weavetest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Verdict is what becomes of one request.
type Verdict struct {
	Status   int    // of HTTP
	Reason   string // of a refusal, or of a partial success
	Spans    int    // in the request
	Rejected int    // spans rejected in a partial success
	Unrouted int    // spans dropped in silence, for want of entity and project
	Merged   int    // spans that overwrote another span of the request, since they have its id
	Calls    []Call // what is stored, in the order of the request; of two with one id the later overwrites the earlier
	Agents   []AgentSpan
}

// OK tells whether every span of the request is stored whole, under an id of its own.
func (v Verdict) OK() bool { return v.Problem() == "" }

// Problem says what a user would miss of the request; empty: every span is stored whole, under an id of its own.
func (v Verdict) Problem() string {
	switch {
	case v.Status != http.StatusOK:
		return fmt.Sprintf("status %d: %s", v.Status, v.Reason)
	case v.Rejected > 0:
		return fmt.Sprintf("%d spans rejected: %s", v.Rejected, v.Reason)
	case v.Unrouted > 0:
		return fmt.Sprintf("%d spans without entity and project", v.Unrouted)
	case v.Merged > 0:
		return fmt.Sprintf("%d spans overwrote others with their ids", v.Merged)
	}
	for _, c := range v.Calls {
		switch {
		case c.Useless:
			return fmt.Sprintf("span %q of trace %q has no id of its own", c.ID, c.TraceID)
		case c.Unreadable:
			return fmt.Sprintf("span %s nests so deep, or refers to Weave where it cannot, or holds half a surrogate pair, that the project's calls cannot be listed any more", c.ID)
		case len(c.Blanked) > 0:
			return fmt.Sprintf("span %s is too large: %v blanked", c.ID, c.Blanked)
		}
	}
	return ""
}

// Lost is how many of the spans no user will see.
func (v Verdict) Lost() int {
	unreadable := map[string]bool{}
	for _, c := range v.Calls {
		unreadable[c.Project] = unreadable[c.Project] || c.Unreadable
	}
	shown := len(v.Agents) - v.Merged
	for _, c := range v.Calls {
		if !unreadable[c.Project] {
			shown++
		}
	}
	return v.Spans - shown
}

// Judge says what becomes of a request to [CallsPath] or [AgentsPath], from its protobuf body alone.
func Judge(path string, body []byte) Verdict {
	req, err := parse(body)
	if err != nil {
		return refused(err)
	}
	return ingest(path, req, Options{}, "", "")
}

// JudgeTraces judges what the exporter would send: the OTLP protobuf form of td.
func JudgeTraces(path string, td ptrace.Traces) Verdict {
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	if err != nil {
		return refused(fail(http.StatusBadRequest, "marshal the traces: %v", err))
	}
	return Judge(path, body)
}

// messageDepth is how deep messages may lie in one another, the request itself counted: the limit of upb, which Python parses with.
const messageDepth = 101

func parse(body []byte) (*coltracepb.ExportTraceServiceRequest, error) {
	var req coltracepb.ExportTraceServiceRequest
	if err := (proto.UnmarshalOptions{RecursionLimit: messageDepth}).Unmarshal(body, &req); err != nil {
		return nil, fail(http.StatusBadRequest, "DecodeError: %v", err)
	}
	return &req, nil
}

func refused(err error) Verdict {
	var f *failure
	if !errors.As(err, &f) || f.status == 0 {
		f = &failure{http.StatusInternalServerError, err.Error()}
	}
	return Verdict{Status: f.status, Reason: f.reason}
}

// maxMessages is how many rejected spans an answer names.
const maxMessages = 20

// ingest takes one project after the other, as Weave does: what is stored before one fails stays.
func ingest(path string, req *coltracepb.ExportTraceServiceRequest, opts Options, project, run string) Verdict {
	v := Verdict{Status: http.StatusOK}
	byProject := map[string][]*tracepb.ResourceSpans{}
	var order []string
	for _, rs := range req.ResourceSpans {
		to := route(rs.GetResource().GetAttributes(), project)
		v.Spans += count(rs)
		switch {
		case to == "":
			v.Unrouted += count(rs)
		case byProject[to] == nil:
			order = append(order, to)
			fallthrough
		default:
			byProject[to] = append(byProject[to], rs)
		}
	}
	in := ingestion{Verdict: &v, path: path, run: run, rowLimit: opts.rowLimit()}
	for _, to := range order {
		if err := in.project(to, byProject[to]); err != nil {
			r := refused(err)
			v.Status, v.Reason, v.Rejected = r.Status, r.Reason, 0
			return v
		}
	}
	if len(in.rejections) > maxMessages {
		in.rejections = append(in.rejections[:maxMessages], "...")
	}
	v.Reason = strings.Join(in.rejections, "; ")
	ids := map[[2]string]bool{}
	for _, c := range v.Calls {
		ids[[2]string{c.Project, c.ID}] = true
	}
	v.Merged = len(v.Calls) - len(ids)
	return v
}

func count(rs *tracepb.ResourceSpans) (n int) {
	for _, ss := range rs.ScopeSpans {
		n += len(ss.Spans)
	}
	return n
}

// ingestion is the way of one request.
type ingestion struct {
	*Verdict
	path       string
	run        string // of the wb_run_id header
	rowLimit   int
	rejections []string
}

// project ingests the spans of one project: all that are not rejected, or none.
func (in *ingestion) project(name string, all []*tracepb.ResourceSpans) error {
	calls, agents := len(in.Calls), len(in.Agents)
	for _, rs := range all {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				if err := checkReferences(s.Attributes, "", name); err != nil {
					return err
				}
			}
		}
	}
	for _, rs := range all {
		if err := in.resource(name, rs); err != nil {
			in.Calls, in.Agents = in.Calls[:calls], in.Agents[:agents]
			return err
		}
	}
	return nil
}

func (in *ingestion) resource(project string, rs *tracepb.ResourceSpans) error {
	attributes, err := expand(rs.GetResource().GetAttributes())
	if err != nil {
		return err // Not caught per span: a clash of keys fails the request, wandb/weave#7705.
	}
	for _, ss := range rs.ScopeSpans {
		for _, pb := range ss.Spans {
			err := in.span(&span{pb: pb, project: project, run: in.run, resource: attributes})
			var f *failure
			if errors.As(err, &f) && f.status == 0 {
				in.Rejected++
				in.rejections = append(in.rejections, fmt.Sprintf("Rejected span (name='%s' trace_id='%x' span_id='%x'): %s", pb.Name, pb.TraceId, pb.SpanId, f.reason))
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *ingestion) span(s *span) error {
	if err := s.read(); err != nil {
		return err
	}
	if in.path == AgentsPath {
		a, err := s.agent()
		if err == nil {
			in.Agents = append(in.Agents, a)
		}
		return err
	}
	c, err := s.call(in.rowLimit)
	if err == nil {
		in.Calls = append(in.Calls, c)
	}
	return err
}
