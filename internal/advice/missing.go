// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package advice // import "github.com/lenscol/lenscol/internal/advice"

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// elsewhere says what does the work of components of otelcol-contrib that this distribution leaves out: those that configs which
// come here name, NeMo Lens's above all.
var elsewhere = map[string]string{
	"exporters elasticsearch": "otlp_http sends to the OTLP intake of Elastic's APM Server or of Elastic Cloud",
	"exporters rabbitmq":      "Kafka is in: lenscol configs show kafka-agent; or a queue on disk, as in lenscol configs show honeycomb",
	"receivers rabbitmq":      "Kafka is in: lenscol configs show kafka-gateway",
	"connectors routing":      "the forward connector with a filter behind it does that: lenscol configs show goodput-routing",
	"exporters datadog":       "otlp_http sends to Datadog's OTLP intake: lenscol configs show datadog",
	"exporters loki":          "otlp_http sends to Loki, which takes OTLP at /otlp",
	"exporters awss3":         "jsonl uploads what it has written to S3, GCS and Azure: docs/jsonl.md",
}

// unknown is what the collector says of a component that it does not have.
var unknown = regexp.MustCompile(`'([a-z]+)' unknown type: "([a-zA-Z0-9_]+)" for id: "[^"]*"(?: \(valid values: \[([^\]]*)\]\))?`)

// Explain adds to an error about components that are not there what to take in their place. Other errors, and nil, stay as they are.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	var b strings.Builder
	for _, match := range unknown.FindAllStringSubmatch(err.Error(), -1) {
		section, kind := match[1], match[2]
		fmt.Fprintf(&b, "\nthere is no %s %s in lenscol", kind, strings.TrimSuffix(section, "s"))
		instead := elsewhere[section+" "+kind]
		if meant := nearest(kind, strings.Fields(match[3])); meant != "" && instead == "" {
			fmt.Fprintf(&b, ", did you mean %s?", meant)
			continue
		}
		if instead != "" {
			b.WriteString(": " + instead)
		}
		b.WriteString("; docs/ocb.md says how to build a collector with both")
	}
	if b.Len() == 0 {
		return err
	}
	return fmt.Errorf("%w%s", err, b.String())
}

// nearest is the type that was probably meant, "" where none is near.
func nearest(kind string, known []string) (meant string) {
	slices.Sort(known)
	best := 3 // Further away is another word.
	for _, candidate := range known {
		if d := Distance(kind, candidate); d < best && d < len(candidate)/2 {
			meant, best = candidate, d
		}
	}
	return meant
}
