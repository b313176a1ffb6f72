// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

package jsonlreader_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/lenscol/lenscol/exporter/jsonlexporter/jsonlreader"
)

const example = `{"type":"resource","id":1,"attributes":{"service.name":"trainer","nv.dl.rank":3}}
{"type":"scope","id":1,"resource":1,"name":"nemo.lens"}
{"type":"span","name":"training_step","start_ns":1767225600000000000,"duration_ns":1250000000,"scope":1}
{"type":"span","name":"training_step","start_ns":17672256012500
{"type":"span","name":"checkpoint","start_ns":1767225602500000000,"duration_ns":3000000000,"scope":1}
{"type":"span","name":"training_st`

// Read a file in batches that can be sent on, past a damaged line and up to a torn end.
func ExampleReader_Next() {
	r := jsonlreader.New(strings.NewReader(example), "traces.jsonl")
	for {
		batch, err := r.Next()
		var bad *jsonlreader.LineError
		switch {
		case errors.Is(err, io.EOF):
			fmt.Printf("%d bytes torn\n", r.Torn())
			return
		case errors.As(err, &bad):
			fmt.Printf("%s, line %d is damaged: %t\n", bad.File, bad.Line, errors.Is(err, jsonlreader.ErrNotJSON))
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Printf("%s: %d of lines %d to %d\n", batch.Signal, batch.Traces.SpanCount(), batch.FirstLine, batch.LastLine)
		}
	}
	// Output:
	// traces: 1 of lines 3 to 3
	// traces.jsonl, line 4 is damaged: true
	// traces: 1 of lines 5 to 5
	// 34 bytes torn
}

// Read single records, each with its origin and its place in the file.
func ExampleReader_NextRecord() {
	r := jsonlreader.New(strings.NewReader(example), "traces.jsonl")
	for {
		rec, err := r.NextRecord()
		var bad *jsonlreader.LineError
		if errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return
		}
		service, _ := rec.Scope.Resource.Attributes().Get("service.name")
		fmt.Println(rec.Line, service.Str(), rec.Scope.Name(), rec.Span.Name(), rec.Span.EndTimestamp().AsTime().Sub(rec.Span.StartTimestamp().AsTime()))
	}
	// Output:
	// 3 trainer nemo.lens training_step 1.25s
	// 5 trainer nemo.lens checkpoint 3s
}
