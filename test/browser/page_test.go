// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package browser

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// One rank of 64 is slow and one falls silent: the page finds both, also where rank_gate drops 63 of the 64.
func TestFindsTheSlowAndTheSilentRank(t *testing.T) {
	for name, gate := range map[string]bool{"all go on": false, "rank_gate drops 63": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, url := start(t, gate, "")
			run := newJob("run of 64", 64)
			run.slow, run.silent, run.silentAt, run.failing = 17, 41, 20, 30
			run.send(t, c, 1, 30)
			run.sendOn(t, c, 31)

			b := newTab(t)
			b.open(url)
			b.untilText("#run-title", "run of 64")
			b.untilText("#facts", "64 of 64")
			b.untilText("#slow tbody tr:first-child", "17")
			require.Contains(t, b.text("#slow tbody tr:first-child"), "gpu-002")
			require.Regexp(t, `60[0-9] ms \(1\.[45]\d ×\)`, b.text("#slow tbody tr:first-child"))
			require.Equal(t, 64, eval[int](b, `fetch("api/runs/run%20of%2064").then((answer) => answer.json()).then((run) => run.rows.rank.length)`))

			b.untilText("#silent tbody tr:first-child", "gpu-005")
			require.Regexp(t, `^41\s`, b.text("#silent tbody tr:first-child"))
			require.Contains(t, b.text("#silent tbody tr:first-child"), "19")
			require.Equal(t, 1, eval[int](b, `document.querySelectorAll("#silent tbody tr").length`))
			require.Contains(t, b.text("#facts .alarm"), "1 rank")
			b.screen(fmt.Sprintf("64-silent-gate-%t", gate))
			if gate {
				require.Contains(t, b.text("#facts"), "Dropped by single_rank")
				require.Contains(t, b.text("#pipelines"), "rank_gate")
			}
			b.untilText("#live", "Live")
			before := b.text("#facts")
			b.until(fmt.Sprintf(`document.querySelector("#facts").innerText !== %s`, quote(before))) // By itself.
			b.noErrors()
		})
	}
}

func TestPipelinesShowWhatIsWrong(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, "")
	newJob("far away", 8).send(t, c, 1, 3)
	b := newTab(t)
	b.open(url)
	b.untilText(`[aria-label="Pipeline traces/far"] .stage.unhealthy`, "otlp_http/down")
	b.untilText(`[aria-label="Pipeline traces/far"] .stage.unhealthy`, "connection refused")
	b.untilText(`[aria-label="Pipeline traces"]`, "24 accepted")
	b.untilText(`[aria-label="Pipeline traces"]`, "24 sent")
	b.untilText("#overall", "unhealthy")
	require.Contains(t, b.text(`[aria-label="Pipeline traces"]`), "run_id_enricher")
	b.noErrors()
}

// What clients send stays text, whatever it looks like.
func TestNamesAreNoHTML(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, "")
	const evil = `<script>document.title="owned"</script><img src=x onerror="window.owned=1">&amp;"'`
	run := newJob(evil, 8)
	run.send(t, c, 1, 2)
	b := newTab(t)
	b.open(url)
	b.until(fmt.Sprintf(`document.getElementById("run-title").textContent === %s`, quote(evil)))
	b.until(fmt.Sprintf(`document.querySelector("#run-list .name").textContent === %s`, quote(evil)))
	require.Equal(t, 1, eval[int](b, `document.scripts.length`))
	require.Zero(t, eval[int](b, `document.images.length`))
	require.True(t, eval[bool](b, `window.owned === undefined`))
	require.NotEqual(t, "owned", eval[string](b, `document.title`))
	b.noErrors()

	// The policy and Trusted Types stand behind it: HTML from text is refused, and so is a script of somebody else.
	require.True(t, eval[bool](b, `(() => { try { document.body.innerHTML = "<b>x</b>"; return false } catch (error) { return error instanceof TypeError } })()`))
	require.True(t, eval[bool](b, `(() => { const script = document.createElement("script"); try { script.text = "window.owned = 1" } catch { return true } document.head.append(script); return window.owned === undefined })()`))
}

func TestAddressLeadsToARank(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, "")
	for _, id := range []string{"first/run", "second run"} {
		newJob(id, 16).send(t, c, 1, 3)
	}
	b := newTab(t)
	b.open(url + "#run=first%2Frun&rank=11&colour=errors")
	b.untilText("#run-title", "first/run")
	b.untilText("#detail-title", "Rank 11")
	b.untilText("#detail-body", "gpu-001")
	require.True(t, eval[bool](b, `document.querySelector('#mode input[value="errors"]').checked`))
	require.Equal(t, "page", eval[string](b, `[...document.querySelectorAll("#run-list a")].find((link) => link.textContent.includes("first/run")).getAttribute("aria-current")`))

	b.do(chromedp.Click(chromedp.CSS(`#slow a`)))
	b.until(`location.hash.includes("rank=") && document.querySelector("tr.picked, #detail-title").textContent !== "Rank 11"`)
	require.Contains(t, eval[string](b, `location.hash`), "run=first%2Frun")
	b.do(chromedp.NavigateBack())
	b.untilText("#detail-title", "Rank 11")

	b.do(chromedp.Click(chromedp.CSS(`#run-list li:not(:has([aria-current])) a`)))
	b.untilText("#run-title", "second run")
	b.open(url + "#run=second+run&rank=99")
	b.untilText("#detail-title", "Rank 99 is not here")
	b.open(url + "#run=third")
	b.untilText("#empty-title", "This run is not here")
	b.noErrors()
}

// Several services of a run each have a rank 3.
func TestAddressNamesTheServiceWhereSeveralHaveRanks(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, "")
	for _, service := range []string{"gym", "megatron"} {
		run := newJob("", 8)
		run.service = service
		run.send(t, c, 1, 3)
	}
	b := newTab(t)
	b.open(url)
	b.untilText("#run-title", "Ranks without a run")
	b.untilText("#facts", "16 of 16")
	b.do(chromedp.Focus(chromedp.CSS("#filter")), chromedp.SendKeys(chromedp.CSS("#filter"), "3"))
	b.untilText("#table tbody tr:nth-child(2)", "megatron 3")
	b.do(chromedp.Click(chromedp.CSS("#table tbody tr:nth-child(2) a")))
	b.untilText("#detail-title", "Rank 3 of megatron")
	require.Equal(t, "#run=%28none%29&service=megatron&rank=3", eval[string](b, `location.hash`))
	b.open(url + "#run=%28none%29&service=gym&rank=3")
	b.untilText("#detail-title", "Rank 3 of gym")
	b.noErrors()
}

// All can be reached and used by keys alone, and what a key selects is said.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, "")
	newJob("keys", 16).send(t, c, 1, 5)
	b := newTab(t)
	b.open(url)
	b.untilText("#run-title", "keys")

	var order []string
	for range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](b, `(document.activeElement.id || document.activeElement.dataset.key || document.activeElement.value || document.activeElement.tagName)`)
		order = append(order, at)
		require.True(t, eval[bool](b, `document.activeElement === document.body || document.activeElement.matches(":focus-visible")`), at)
	}
	for _, want := range []string{"skip", "theme", "run keys", "lag", "grid", "heat", "filter", "sort-0"} {
		require.Contains(t, order, want)
	}

	b.do(chromedp.Focus(chromedp.CSS("#grid")))
	option := func() string {
		return eval[string](b, `document.getElementById(document.activeElement.getAttribute("aria-activedescendant")).textContent`)
	}
	require.Contains(t, option(), "Rank 0, gpu-000, step 5")
	b.do(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.ArrowRight))
	require.Contains(t, option(), "Rank 2,")
	b.do(chromedp.KeyEvent(kb.End))
	require.Contains(t, option(), "Rank 15, gpu-001")
	b.do(chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	b.untilText("#detail-title", "Rank 1")
	require.Contains(t, eval[string](b, `location.hash`), "rank=1")
	require.Equal(t, "grid", eval[string](b, `document.activeElement.id`), "the focus stays where it is")

	b.do(chromedp.Focus(chromedp.CSS("#heat")))
	require.Regexp(t, `^Step 1, Rank 0, gpu-000, 40\d ms$`, option())
	b.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight))
	require.Regexp(t, `^Step 2, Rank 1, gpu-000, 40\d ms$`, option())

	b.do(chromedp.Focus(chromedp.CSS(`#mode input[value="lag"]`)), chromedp.KeyEvent(kb.ArrowRight))
	require.True(t, eval[bool](b, `document.querySelector('#mode input[value="silence"]').checked`))
	b.untilText("#grid-legend", "heard in the last")

	b.do(chromedp.Focus(chromedp.CSS("#filter")), chromedp.SendKeys(chromedp.CSS("#filter"), "gpu-001"))
	b.untilText("#table [role=status]", "1 to 8 of 8 ranks")
	b.do(chromedp.Focus(chromedp.CSS(`[data-key="sort-0"]`)), chromedp.KeyEvent(kb.Enter))
	b.untilText("#table tbody tr:first-child", "15")
	require.Equal(t, "sort-0", eval[string](b, `document.activeElement.dataset.key`))
	require.Equal(t, "descending", eval[string](b, `document.querySelector("th[aria-sort]").getAttribute("aria-sort")`))
	b.noErrors()
}

func TestTokenOpensThePage(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, fmt.Sprintf(", token: %s", token))
	newJob("locked", 8).send(t, c, 1, 2)
	b := newTab(t)
	b.open(url)
	b.untilText("#login", "This page needs a token")
	require.NotContains(t, b.text("body"), "locked")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), "not the token at all"+kb.Enter))
	b.untilText("#login-error", "This is not the token.")
	b.do(chromedp.SendKeys(chromedp.CSS("#token"), token+kb.Enter))
	b.untilText("#run-title", "locked")
	b.untilText("#live", "Live")
	require.Empty(t, eval[string](b, `document.cookie + Object.keys(localStorage) + document.getElementById("token").value`), "no script can read the cookie")
	b.open(url) // The cookie is enough from here on.
	b.untilText("#run-title", "locked")
	b.noErrors()

	// After a restart the cookie is worth nothing: the page asks again.
	c.Stop()
	b.until(`!document.getElementById("notice").hidden`)
	require.Contains(t, b.text("#notice"), "No connection to the collector")
	require.Contains(t, b.text("#live"), "Disconnected")
	c.Start()
	b.untilText("#login", "This page needs a token")
}

func TestColoursCanBeChosen(t *testing.T) {
	t.Parallel()
	_, url := start(t, false, "")
	b := newTab(t)
	const isDark = `document.documentElement.hasAttribute("data-dark")`
	dark := func() bool { return eval[bool](b, isDark) }
	b.colours("dark")
	b.open(url)
	require.True(t, dark())
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	require.False(t, dark())
	b.open(url)
	require.False(t, dark(), "it is kept")
	b.do(chromedp.Click(chromedp.CSS("#theme")))
	b.colours("light")
	b.until("!" + isDark) // What the system has is followed again.
	b.noErrors()
}

// Where the event stream is refused, as it is to the 33rd listener, the page asks from time to time.
func TestAsksWhereEventsDoNotCome(t *testing.T) {
	t.Parallel()
	c, url := start(t, false, "")
	run := newJob("many watch", 8)
	run.send(t, c, 1, 1)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range 32 {
		response, err := client.Get(url + "api/events")
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	b := newTab(t)
	b.open(url)
	b.untilText("#live", "Asking every 2 s")
	run.send(t, c, 2, 7)
	b.untilText("#facts", "Front step\n7")
	b.noErrors()
}
