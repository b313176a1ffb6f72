// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package lenshealth // import "github.com/lenscol/lenscol/extension/lenshealth"

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
)

// topology is which components stand where, as the effective config has it: names and timeouts, and no other value of it.
type topology struct {
	pipelines  []pipelineMembers // by id
	extensions []string
	timeouts   map[string]time.Duration // of exporters, by id; 0 for none
}

type pipelineMembers struct {
	id, signal                       string
	receivers, processors, exporters []member
}

// member is a component in a pipeline. A connector stands at the end of one and at the beginning of another.
type member struct{ kind, id string }

func readTopology(effective *confmap.Conf) topology {
	t := topology{extensions: texts(effective.Get("service::extensions")), timeouts: map[string]time.Duration{}}
	connectors := asMap(effective.Get("connectors"))
	members := func(kind string, ids any) (list []member) {
		for _, id := range texts(ids) {
			m := member{kind, id}
			if _, ok := connectors[id]; ok {
				m.kind = kindConnector
			}
			list = append(list, m)
		}
		return list
	}
	pipelines := asMap(effective.Get("service::pipelines"))
	for _, id := range slices.Sorted(maps.Keys(pipelines)) {
		section := asMap(pipelines[id])
		signal, _, _ := strings.Cut(id, "/")
		t.pipelines = append(t.pipelines, pipelineMembers{
			id: id, signal: signal,
			receivers:  members(kindReceiver, section["receivers"]),
			processors: members(kindProcessor, section["processors"]),
			exporters:  members(kindExporter, section["exporters"]),
		})
	}
	for id, section := range asMap(effective.Get("exporters")) {
		if timeout, err := time.ParseDuration(fmt.Sprint(asMap(section)["timeout"])); err == nil {
			t.timeouts[id] = timeout
		}
	}
	return t
}

func texts(value any) (list []string) {
	items, _ := value.([]any)
	for _, item := range items {
		list = append(list, fmt.Sprint(item))
	}
	return list
}

func (p pipelineMembers) all() []member { return slices.Concat(p.receivers, p.processors, p.exporters) }
