// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package browser

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// axe runs axe-core over what the tab shows and fails the test for every finding that is serious or worse.
func axe(b *tab, what string) {
	b.t.Helper()
	path := os.Getenv("LENSCOL_AXE")
	require.NotEmpty(b.t, path, "LENSCOL_AXE names no axe.min.js: run make test-browser")
	source, err := os.ReadFile(path)
	require.NoError(b.t, err)
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[any](string(source)+"; undefined", chromedp.EvalIgnoreExceptions))
		return err
	}))
	type finding struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML           string
			FailureSummary string
		}
	}
	result := eval[struct {
		Passes     int
		Violations []finding
	}](b, `axe.run(document, {resultTypes: ["violations"]}).then((result) => ({passes: result.passes.length, violations: result.violations}))`)
	require.Greater(b.t, result.Passes, 10, "%s: axe-core has looked at nothing", what)
	for _, f := range result.Violations {
		var nodes strings.Builder
		for _, node := range f.Nodes {
			fmt.Fprintf(&nodes, "\n  %s\n    %s", node.HTML, strings.ReplaceAll(node.FailureSummary, "\n", "\n    "))
		}
		text := fmt.Sprintf("%s: %s (%s): %s%s", what, f.ID, f.Impact, f.Help, nodes.String())
		if f.Impact == "serious" || f.Impact == "critical" {
			b.t.Error(text)
		} else {
			b.t.Log(text)
		}
	}
}

// Every state of the page, light and dark, has no serious finding of axe-core.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	empty, emptyURL := start(t, false, "")
	full, url := start(t, false, "")
	_, lockedURL := start(t, false, ", token: "+token)
	run := newJob("accessible", 64)
	run.slow, run.failing = 17, 30
	run.send(t, full, 1, 20)

	b := newTab(t)
	_, err := chromedp.Call(b.ctx, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true}) // For axe-core.
	require.NoError(t, err)
	for _, scheme := range []string{"light", "dark"} {
		b.colours(scheme)
		b.open(emptyURL)
		b.untilText("#empty-title", "No run has sent anything yet")
		axe(b, "empty, "+scheme)

		b.open(url + "#run=accessible&rank=17")
		b.untilText("#detail-title", "Rank 17")
		b.untilText(`[aria-label="Pipeline traces/far"] .stage.unhealthy`, "otlp_http/down")
		b.do(chromedp.Focus(chromedp.CSS("#grid")))
		axe(b, "a run, "+scheme)
		b.do(chromedp.EmulateViewport(390, 844))
		axe(b, "a run on a phone, "+scheme)
		require.LessOrEqual(t, eval[int](b, `document.documentElement.scrollWidth`), 390, "the page does not scroll sideways")
		b.do(chromedp.EmulateViewport(1280, 900))

		b.open(lockedURL)
		b.untilText("#login", "This page needs a token")
		axe(b, "login, "+scheme)
	}
	b.open(emptyURL)
	empty.Stop()
	b.until(`!document.getElementById("notice").hidden`)
	axe(b, "disconnected")
}
