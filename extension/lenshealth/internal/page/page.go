// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

// Package page is the page that browsers get from lens_health: one HTML file, which holds its style and its script, loads
// nothing, and fills itself from /api/runs, /api/pipelines and /api/events.
//
// assets/page.html is the frame, page.css the style. The scripts are joined in the order of [scripts] into one that runs in
// a function of its own; assets/main.js is where to begin to read.
package page // import "github.com/lenscol/lenscol/extension/lenshealth/internal/page"

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

//go:embed assets
var assets embed.FS

// scripts are in the order in which they need each other while they load.
var scripts = []string{"util.js", "scale.js", "model.js", "net.js", "chart.js", "grid.js", "heat.js", "lists.js", "table.js", "pipelines.js", "main.js"}

// Handler serves the page. Its Content-Security-Policy lets the browser run this script and no other, ask this server alone,
// and, by Trusted Types, refuse text that a script would have it parse as HTML: attribute values of clients stay text.
func Handler() http.Handler {
	style := read("page.css")
	script := joined()
	html := bytes.Replace([]byte(read("page.html")), []byte("{{style}}"), []byte(style), 1)
	html = bytes.Replace(html, []byte("{{script}}"), []byte(script), 1)
	policy := strings.Join([]string{
		"default-src 'none'", "script-src " + hash(script), "style-src " + hash(style), "connect-src 'self'", "img-src data:",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	}, "; ")
	length := strconv.Itoa(len(html))
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(html) // Who asked has gone.
	})
}

func joined() string {
	var script strings.Builder
	script.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		script.WriteString(read(name))
	}
	script.WriteString("})();\n")
	return script.String()
}

// hash is the source expression of CSP for an inline element with this text.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func read(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // It is embedded: a name above is wrong.
	}
	return string(data)
}
