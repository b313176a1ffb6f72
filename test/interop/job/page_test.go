// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package job

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// requirePage demands of the page that the first row of the slow ranks is the slow one's, and the only one of the silent ranks the killed one's.
func requirePage(t *testing.T, page string) {
	t.Helper()
	browser := os.Getenv("LENSCOL_CHROMIUM")
	if browser == "" {
		browser, _ = exec.LookPath("chromium")
	}
	if browser == "" {
		t.Log("SKIPPED, the page in a browser: needs Debian's chromium")
		return
	}
	bounded, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	allocator, stop := chromedp.NewExecAllocator(bounded, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.NoSandbox)...)
	defer stop()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	defer func() { _ = chromedp.Cancel(tab) }()
	require.NoError(t, chromedp.Do(tab, chromedp.Navigate(page)))
	var slowest, silent string
	text := func(selector string) string {
		value, err := chromedp.Run(tab, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector)))
		require.NoError(t, err)
		return value
	}
	eventually(t, "the sick ranks on the page", func() bool {
		slowest, silent = text("#slow tbody tr:first-child"), text("#silent tbody")
		return slowest != "" && silent != ""
	})
	require.Regexp(t, fmt.Sprintf(`^%d\s+%s\s`, slow, host(slow)), slowest)
	require.Regexp(t, fmt.Sprintf(`^%d\s+%s\s[^\n]*$`, killed, host(killed)), silent)
}

func get(t *testing.T, address string) (code int, body []byte) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(address)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, body
}
