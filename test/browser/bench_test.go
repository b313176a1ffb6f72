// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package browser

import (
	"slices"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// BenchmarkPage shows 10,000 ranks. An operation is a refresh, from asking to drawn. Besides, it gives the time from the begin of the
// navigation until all is drawn first, the median of five, and the heap of the page after all refreshes.
func BenchmarkPage(b *testing.B) {
	c, url := start(b, false, "")
	sendMany(b, c)
	page := newTab(b)
	var first []float64
	for range 5 {
		page.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
		first = append(first, eval[float64](page, `new Promise((resolve) => {
			const look = () => document.querySelector("#table tbody tr") ? resolve(performance.now()) : requestAnimationFrame(look);
			look();
		})`))
		require.Contains(b, page.text("#facts"), "10,000")
	}
	slices.Sort(first)
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
	b.ReportMetric(first[len(first)/2], "first-ms")
	b.ReportMetric(took/float64(b.N), "refresh-ms")
	b.ReportMetric(eval[float64](page, `performance.memory.usedJSHeapSize`)/(1<<20), "heap-MiB")
}
