// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

// Package docs tests the pages of docs/: every sh block runs, every yaml block is used by one of them, every link leads somewhere.
package docs // import "github.com/lenscol/lenscol/test/docs"

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/configs"
	"github.com/lenscol/lenscol/internal/testbed"
)

// elsewhere are the pages whose blocks other tests run, or that have none, and which those are.
var elsewhere = map[string]string{
	"deploy.md":      "test/deploy",
	"README.md":      "no blocks",
	"cli.md":         "cmd/lenscol/internal/command, test/e2e",
	"decisions.md":   "no blocks",
	"enrich.md":      "processor/runidenricher",
	"format.md":      "exporter/jsonlexporter",
	"health.md":      "extension/lenshealth",
	"jsonl.md":       "test/questions",
	"ocb.md":         "test/ocb",
	"performance.md": "no blocks",
	"ranks.md":       "processor/rankfilter",
	"reliability.md": "test/chaos",
	"report.md":      "internal/report",
	"runs.md":        "extension/lenshealth",
	"sdk.md":         "sdk, test/sdk",
	"weave.md":       "exporter/weaveexporter",
	"whole-job.md":   "test/interop/job",
}

const folder = "../../docs"

func pages(t *testing.T) (names []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	return names
}

// TestPages runs each page's sh blocks in order, as a reader would in a shell that stays open: exports go on. A block that ends with a
// collector in the foreground is a terminal of its own, until the next such block. A yaml block is written to the file that its first line
// names; a block after it uses that file. A text block with nothing between it and an sh block is the end of what that prints, with … for anything.
func TestPages(t *testing.T) {
	for _, name := range pages(t) {
		if elsewhere[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			blocks := readBlocks(t, name)
			for i, b := range blocks {
				switch b.language {
				case "sh":
					want := ""
					if i+1 < len(blocks) && blocks[i+1].answer {
						want = blocks[i+1].text
					}
					r.run(b.text, want)
				case "yaml":
					file, _, _ := strings.Cut(strings.TrimPrefix(b.text, "# "), "\n")
					require.Regexp(t, `^[a-z-]+\.yaml$`, file, "the first line of a yaml block names its file")
					require.True(t, slices.ContainsFunc(blocks[i:], func(b block) bool { return b.language == "sh" && strings.Contains(b.text, file) }), "no command uses %s", file)
					require.NoError(t, os.WriteFile(filepath.Join(r.dir, file), []byte(b.text), 0o600))
				default:
					require.Equal(t, "text", b.language, b.text)
				}
			}
			r.stop()
		})
	}
}

// TestLinks follows the links between pages, and to files beside them. README.md lists all pages.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	index, err := os.ReadFile(filepath.Join(folder, "README.md"))
	require.NoError(t, err)
	for _, name := range pages(t) {
		text, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		if name != "README.md" {
			require.Contains(t, string(index), "]("+name+")", "docs/README.md lists every page")
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(match[1], "://") {
				_, err := os.Stat(filepath.Join(folder, match[1]))
				require.NoError(t, err, "a link in %s", name)
			}
		}
	}
}

// TestEveryConfigIsListed holds docs/configs.md to what the binary has.
func TestEveryConfigIsListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "configs.md"))
	require.NoError(t, err)
	for _, name := range configs.Names() {
		require.Regexp(t, "(?m)^\\|.*`"+name+"`", string(text))
	}
}

type block struct {
	language, text string
	answer         bool // a text block right after another one
}

func readBlocks(t *testing.T, name string) (blocks []block) {
	text, err := os.ReadFile(filepath.Join(folder, name))
	require.NoError(t, err)
	end := -1
	for _, match := range regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$").FindAllSubmatchIndex(text, -1) {
		b := block{language: string(text[match[2]:match[3]]), text: string(text[match[4]:match[5]])}
		b.answer = b.language == "text" && end >= 0 && strings.TrimSpace(string(text[end:match[0]])) == ""
		blocks = append(blocks, b)
		end = match[1]
	}
	return blocks
}

// reader is somebody who follows a page: a folder, a shell, and perhaps a collector in another terminal.
type reader struct {
	t       *testing.T
	dir     string
	env     []string
	exports string

	terminal *exec.Cmd
	screen   *output
	ended    chan error
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	bin := t.TempDir()
	require.NoError(t, os.Symlink(testbed.Binary(t), filepath.Join(bin, "lenscol")))
	r.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LENSCOL_HOST=127.0.0.1",
		// Nothing leaves the machine: backends are where nobody listens.
		"HONEYCOMB_ENDPOINT=http://127.0.0.1:9", "NEW_RELIC_ENDPOINT=http://127.0.0.1:9", "DD_SITE=site.invalid", "WF_TRACE_SERVER_URL=http://127.0.0.1:9",
		"LENSCOL_JAEGER=127.0.0.1:9", "LENSCOL_TEMPO=127.0.0.1:9", "LENSCOL_REFINERY=127.0.0.1:9", "LENSCOL_BACKEND=127.0.0.1:9", "LENSCOL_PEERS=localhost",
		"LENSCOL_REMOTE_WRITE=http://127.0.0.1:9/api/v1/write", "LENSCOL_KAFKA_BROKERS=127.0.0.1:9")
	for _, port := range []string{"GRPC", "HTTP", "METRICS", "HEALTH", "PROMETHEUS", "PEER"} {
		r.env = append(r.env, "LENSCOL_"+port+"_PORT="+testbed.FreePort(t))
	}
	r.writeSecrets()
	t.Cleanup(func() {
		if r.terminal != nil {
			_ = syscall.Kill(-r.terminal.Process.Pid, syscall.SIGKILL)
			<-r.ended
		}
	})
	return r
}

// writeSecrets writes what a site has already: tls.crt, tls.key and token.
func (r *reader) writeSecrets() {
	r.t.Helper()
	testbed.Certificate(r.t, r.dir, "localhost")
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, "token"), []byte("t0ken"), 0o600))
}

var (
	foreground = regexp.MustCompile(`^lenscol( --.*)?$`)
	export     = regexp.MustCompile(`(?m)^export .*\n`)
)

func (r *reader) run(text, want string) {
	r.t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	script := r.exports + text
	r.exports += strings.Join(export.FindAllString(text, -1), "")
	if foreground.MatchString(lines[len(lines)-1]) {
		r.start(script)
		return
	}
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir, cmd.Env = r.dir, r.env
	said, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s\n%s\n%s", text, said, r.screen)
	if want != "" {
		require.Regexp(r.t, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", ".*")+`\s*$`, string(said), text)
	}
}

// start has a collector run in a terminal of its own, once it is ready.
func (r *reader) start(script string) {
	r.t.Helper()
	r.stop()
	cmd := exec.Command("sh", "-ec", script)
	r.screen = &output{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, r.screen, r.screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(r.t, cmd.Start())
	r.terminal, r.ended = cmd, make(chan error, 1)
	go func() { r.ended <- cmd.Wait() }()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(r.screen.String(), "Everything is ready"); time.Sleep(20 * time.Millisecond) {
		select {
		case err := <-r.ended:
			r.terminal = nil
			require.Fail(r.t, "the collector ended", "%s\n%v\n%s", script, err, r.screen)
		default:
			require.True(r.t, time.Now().Before(deadline), "%s\nis not ready:\n%s", script, r.screen)
		}
	}
}

// stop is Control-C in the collector's terminal.
func (r *reader) stop() {
	r.t.Helper()
	if r.terminal == nil {
		return
	}
	require.NoError(r.t, syscall.Kill(-r.terminal.Process.Pid, syscall.SIGINT))
	<-r.ended
	r.terminal = nil
	require.Contains(r.t, r.screen.String(), "Shutdown complete")
}

type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	if o == nil {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
