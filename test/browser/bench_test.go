// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package browser

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// BenchmarkPage shows 10,000 ranks. An operation is a refresh, from asking to drawn. Besides, it gives the time from the begin of the
// navigation until all is drawn first, and the heap of the page after all refreshes.
func BenchmarkPage(b *testing.B) {
	c, url := start(b, false, "")
	sendMany(b, c)
	page := newTab(b)
	page.do(chromedp.Navigate(url))
	page.until(`performance.getEntriesByName("drawn").length && document.querySelector("#table tbody tr")`)
	require.Contains(b, page.text("#facts"), "10,000")
	first := eval[float64](page, `(() => { const [drawn] = performance.getEntriesByName("drawn"); return drawn.startTime + drawn.duration })()`)
	var took float64
	for b.Loop() {
		// As when the tab is shown again: it asks at once.
		took += eval[float64](page, `new Promise((resolve) => {
			new PerformanceObserver((list, observer) => { observer.disconnect(); resolve(list.getEntries()[0].duration) }).observe({entryTypes: ["measure"]});
			document.dispatchEvent(new Event("visibilitychange"));
		})`)
	}
	_, err := chromedp.Call(page.ctx, heapprofiler.CollectGarbage, cdp.Empty{})
	require.NoError(b, err)
	b.ReportMetric(first, "first-ms")
	b.ReportMetric(took/float64(b.N), "refresh-ms")
	b.ReportMetric(eval[float64](page, `performance.memory.usedJSHeapSize`)/(1<<20), "heap-MiB")
}
