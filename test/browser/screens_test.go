// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lenscol/lenscol/internal/testbed"
)

// many is how many ranks the page has to bear.
const many = 10_000

// sendMany sends 40 steps of 10,000 ranks.
func sendMany(t testing.TB, c *testbed.Collector) {
	run := newJob("run of 10,000", many)
	run.slow, run.silent, run.silentAt, run.failing = 1234, 4321, 30, 9876
	run.send(t, c, 1, 40)
}

// The pictures of build/screens are there to be looked at: what is wrong with them no test finds.
func TestScreens(t *testing.T) {
	t.Parallel()
	few := func(t testing.TB, c *testbed.Collector) {
		for _, id := range []string{"48213_7", "<script>alert(1)</script>", "llama3-8b-2026-11-29T20:15"} {
			run := newJob(id, 64)
			run.slow, run.silent, run.silentAt, run.failing = 17, 41, 20, 30
			run.send(t, c, 1, 60)
		}
	}
	for name, send := range map[string]func(testing.TB, *testbed.Collector){"empty": nil, "64": few, "10000": sendMany} {
		c, url := start(t, false, "")
		b := newTab(t)
		if send != nil {
			send(t, c)
			url += "#rank=17"
		}
		for _, width := range []int64{1280, 390} {
			for _, scheme := range []string{"light", "dark"} {
				b.do(chromedp.EmulateViewport(width, 900))
				b.colours(scheme)
				b.open(url)
				b.untilText("#live", "Live")
				b.screen(fmt.Sprintf("%s-%d-%s", name, width, scheme))
			}
		}
		b.noErrors()
	}
	_, url := start(t, false, ", token: "+token)
	b := newTab(t)
	b.open(url)
	b.screen("login-1280-light")
}
