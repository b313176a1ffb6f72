// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package shape turns traces into requests that W&B Weave takes whole.
//
// Weave refuses a request of 10,000 spans for one attribute that it does not expect, drops spans that say no project, blanks rows
// that are too large and links nothing to a run by itself. [Shaper.Shape] repairs what would be refused, fills in what links, and says what
// it changed; docs/weave.md lists every change. Sending is not its business.
//
// Shaping never touches what it is given: it reads spans and writes the bytes of the requests. What one file does to a list of attributes
// is a function of that list alone; only ids.go remembers anything between batches.
package shape // import "github.com/lenscol/lenscol/exporter/weaveexporter/internal/shape"
