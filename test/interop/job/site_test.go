// Copyright The lenscol Authors
// SPDX-License-Identifier: Apache-2.0

//go:build slow

package job

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lenscol/lenscol/internal/testbed"
	"github.com/lenscol/lenscol/test/prometheustest"
)

const (
	nodes   = 2
	perNode = ranks / nodes
)

// host is the node of a rank.
func host(rank int) string { return fmt.Sprint("n", rank/perNode+1) }

// site is what docs/whole-job.md takes for granted: /shared/lenscol with the templates, the program, a certificate and a token.
type site struct {
	dir    string // in place of /shared/lenscol
	python string
	jobDir string
	blocks map[string][]string // of the page, by language
}

func newSite(t *testing.T) *site {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: the nodes have host names of their own")
	}
	s := &site{dir: t.TempDir(), python: os.Getenv("LENSCOL_LENS_PYTHON"), blocks: map[string][]string{}}
	if s.python == "" {
		t.Skip("LENSCOL_LENS_PYTHON is not set to a Python with NeMo Lens: make interop installs it")
	}
	if os.Getenv("LENSCOL_JAEGER_BIN") == "" {
		t.Skip("LENSCOL_JAEGER_BIN is not set to a Jaeger: make interop builds it")
	}
	page, err := os.ReadFile("../../../docs/whole-job.md")
	require.NoError(t, err)
	for _, block := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		s.blocks[block[1]] = append(s.blocks[block[1]], strings.ReplaceAll(block[2], "/shared/lenscol", s.dir))
	}
	require.NoError(t, os.Mkdir(s.gatewayDir(), 0o700))
	s.write(t, "gateway/gateway.yaml", s.blocks["yaml"][0])
	const timeout = "timeout: 30s" // A busy machine is no reason to send a batch again: it would be in the gateway's archive twice.
	require.Contains(t, s.blocks["yaml"][1], timeout)
	s.write(t, "agent.yaml", strings.Replace(s.blocks["yaml"][1], timeout, "timeout: 10m", 1))
	for _, token := range []string{"token", "gateway/token"} {
		s.write(t, token, "a-token-that-every-agent-has")
	}
	cert, _ := testbed.Certificate(t, s.gatewayDir(), "localhost")
	require.NoError(t, os.Symlink(cert, filepath.Join(s.dir, "ca.crt")))
	templates, err := filepath.Abs("../../../deploy/slurm")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(templates, filepath.Join(s.dir, "slurm")))
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "bin"), 0o700))
	require.NoError(t, os.Symlink(testbed.Binary(t), filepath.Join(s.dir, "bin", "lenscol")))
	script, err := os.ReadFile("train.py")
	require.NoError(t, err)
	s.write(t, "train.py", string(script))
	s.jobDir = filepath.Join(s.dir, "lens-data", run)
	require.NoError(t, os.MkdirAll(filepath.Join(s.jobDir, "agents"), 0o700)) // As run.sh does.
	return s
}

func (s *site) gatewayDir() string { return filepath.Join(s.dir, "gateway") }

func (s *site) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

// says runs the exports of a block of the page in a folder, and returns what they set, as NAME=VALUE, and the command that ends the block.
func (s *site) says(t *testing.T, block int, dir string) (env, command []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(s.blocks["sh"][block]), "\n")
	for _, line := range lines[:len(lines)-1] {
		require.Regexp(t, "^export ", line)
	}
	cmd := exec.Command("sh", "-ec", strings.Join(lines[:len(lines)-1], "\n")+"\nenv -0")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	require.NoError(t, err)
	env = slices.DeleteFunc(strings.Split(strings.Trim(string(out), "\x00"), "\x00"), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"PATH", "PWD", "OLDPWD", "SHLVL", "_"}, name)
	})
	return env, strings.Fields(lines[len(lines)-1])
}

// run is what a command of lenscol prints.
func (s *site) run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(testbed.Binary(t), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

type gateway struct {
	*testbed.Collector
	health string // port
}

func (s *site) startGateway(t *testing.T, backends ...string) *gateway {
	t.Helper()
	env, command := s.says(t, 0, s.gatewayDir())
	require.Equal(t, "lenscol", command[0])
	g := &gateway{health: testbed.FreePort(t)}
	g.Collector = testbed.Start(t, testbed.Options{
		Dir: s.gatewayDir(), Args: command[1:], Env: slices.Concat(env, backends, []string{"LENSCOL_HOST=127.0.0.1", "LENSCOL_HEALTH_PORT=" + g.health}),
	})
	return g
}

// pause has it take and write nothing, without a connection that breaks, until it is resumed.
func (g *gateway) pause(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(g.Pid(), syscall.SIGSTOP))
}

func (g *gateway) resume(t *testing.T) {
	t.Helper()
	require.NoError(t, syscall.Kill(g.Pid(), syscall.SIGCONT))
}

// drain ends the agents by SIGTERM, as run.sh does once the ranks have ended, and lets the gateway go on once they have begun to.
func (s *site) drain(t *testing.T, g *gateway, agents []agent) {
	t.Helper()
	for _, agent := range agents {
		agent.Terminate()
		eventually(t, "an agent that shuts down", func() bool {
			log, err := os.ReadFile(agent.log)
			require.NoError(t, err)
			return strings.Contains(string(log), "Starting shutdown...")
		})
	}
	g.resume(t)
	for _, agent := range agents {
		agent.RequireStopped()
	}
}

// view is what the gateway's page shows of the run.
type view struct {
	Silent, Errors  int
	Slowest, Behind []rankOf
	SilentRanks     []rankOf `json:"silent_ranks"`
	Hosts           []string
	Rows            struct {
		Rank, Step, Points, Host []int
		Silent                   []bool
	}
}

type rankOf struct{ Rank int }

func (g *gateway) view(t *testing.T) (v view) {
	t.Helper()
	code, body := get(t, "http://127.0.0.1:"+g.health+"/api/runs/"+run)
	if code == http.StatusNotFound {
		return v // It has not heard of it yet.
	}
	require.Equal(t, http.StatusOK, code, "%s", body)
	require.NoError(t, json.Unmarshal(body, &v))
	return v
}

// on has a command run on the node of a rank, a host of that name, as a task of srun.
func (s *site) on(t *testing.T, rank int, program string, args ...string) (command, env []string) {
	t.Helper()
	env, sbatch := s.says(t, 1, s.dir)
	require.Equal(t, []string{"sbatch", fmt.Sprint("--nodes=", nodes), fmt.Sprint("--ntasks-per-node=", perNode), "train.sbatch", "python", "train.py"}, sbatch)
	command = append([]string{"unshare", "--uts", "sh", "-ec", `hostname "$0"; exec "$@"`, host(rank), filepath.Join(s.dir, "slurm", program)}, args...)
	return command, append(env, "LENSCOL_JOB_DIR="+s.jobDir,
		"SLURM_JOB_ID="+run, "SLURM_JOB_NAME=train", "SLURM_CLUSTER_NAME=alpha", "SLURM_JOB_PARTITION=gpu", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_NNODES="+strconv.Itoa(nodes),
		"SLURM_JOB_NUM_NODES="+strconv.Itoa(nodes), "SLURM_NTASKS="+strconv.Itoa(ranks), "SLURM_STEP_ID=0", "SLURMD_NODENAME="+host(rank),
		"SLURM_PROCID="+strconv.Itoa(rank), "SLURM_LOCALID="+strconv.Itoa(rank%perNode))
}

// agent is a node's.
type agent struct {
	*testbed.Collector
	log        string // file
	prometheus string // port of the page for Prometheus
}

func (s *site) startAgents(t *testing.T, g *gateway) (agents []agent) {
	t.Helper()
	for node := range nodes {
		command, env := s.on(t, node*perNode, "agent.sh")
		env = append(env, "LENSCOL_BACKEND=localhost:"+g.GRPC[strings.LastIndexByte(g.GRPC, ':')+1:])
		c := testbed.Start(t, testbed.Options{Binary: command[0], Args: command[1:], Env: env, Dir: s.dir, Listens: []string{}})
		files := filepath.Join(s.jobDir, "agents", host(node*perNode))
		t.Cleanup(func() {
			if log, _ := os.ReadFile(files + ".log"); t.Failed() {
				t.Logf("the agent's log ends:\n%s", log[max(0, len(log)-8<<10):])
			}
		})
		var ports []byte
		eventually(t, "the agent of "+host(node*perNode)+" listens", func() bool {
			c.RequireRunning()
			var err error
			ports, err = os.ReadFile(files + ".env")
			return err == nil
		})
		port := regexp.MustCompile(`(?m)^export LENSCOL_PROMETHEUS_PORT=(\d+)$`).FindSubmatch(ports)
		require.NotNil(t, port, "%s", ports)
		agents = append(agents, agent{c, files + ".log", string(port[1])})
	}
	return agents
}

// job is the ranks.
type job struct {
	dir   string
	ranks []*exec.Cmd
}

func (s *site) startRanks(t *testing.T) *job {
	t.Helper()
	j := &job{dir: s.dir}
	for rank := range ranks {
		command, env := s.on(t, rank, "rank.sh", s.python, "train.py", fmt.Sprint("slow=", slow), fmt.Sprint("failing=", failing))
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = s.dir
		// A busy machine is no reason to send a batch again; and the points of the killed rank shall not be those of its first ten seconds.
		cmd.Env = append(os.Environ(), append(env, "OTEL_EXPORTER_OTLP_TIMEOUT=60", "OTEL_METRIC_EXPORT_INTERVAL=2000")...)
		cmd.SysProcAttr = testbed.DieWithParent()
		log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("rank-%d.log", rank)))
		require.NoError(t, err)
		cmd.Stdout, cmd.Stderr = log, log
		require.NoError(t, cmd.Start())
		require.NoError(t, log.Close())
		j.ranks = append(j.ranks, cmd)
		t.Cleanup(func() {
			if cmd.ProcessState == nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
			if text, _ := os.ReadFile(log.Name()); t.Failed() {
				t.Logf("the log of rank %d ends:\n%s", rank, text[max(0, len(text)-2<<10):])
			}
		})
	}
	return j
}

// kill ends a rank by SIGKILL.
func (j *job) kill(t *testing.T, rank int) {
	t.Helper()
	require.NoError(t, j.ranks[rank].Process.Kill())
	require.ErrorContains(t, j.ranks[rank].Wait(), "killed")
}

// end has the other ranks end.
func (j *job) end(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "stop"), nil, 0o600))
	for rank, cmd := range j.ranks {
		if rank == killed {
			continue
		}
		impatient := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		require.NoError(t, cmd.Wait(), "rank %d, which has %s to end", rank, patience)
		impatient.Stop()
	}
}

// acknowledged are the ids of a rank's spans whose export succeeded. A line that the killed rank did not finish is none.
func (j *job) acknowledged(t *testing.T, rank int) (ids []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(j.dir, fmt.Sprintf("acknowledged-%d", rank)))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if id, whole := strings.CutSuffix(line, "\n"); whole {
			ids = append(ids, id)
		}
	}
	return ids
}

// prometheus is a real one, which takes remote writes, and scrapes the agents once it knows them.
type prometheus struct {
	*prometheustest.Prometheus
	agents string // file that says where their pages are
}

func (s *site) startPrometheus(t *testing.T) *prometheus {
	t.Helper()
	agents := filepath.Join(s.dir, "agents.json")
	return &prometheus{agents: agents, Prometheus: prometheustest.Start(t, fmt.Sprintf(`
scrape_configs:
  - job_name: lens
    honor_labels: true
    scrape_interval: 1s
    file_sd_configs: [{files: [%s]}]
`, agents), "--web.enable-remote-write-receiver")}
}

// scrape has it scrape the agents. Their series have the label from.
func (p *prometheus) scrape(t *testing.T, agents []agent) {
	t.Helper()
	var targets []string
	for _, agent := range agents {
		targets = append(targets, "127.0.0.1:"+agent.prometheus)
	}
	text, err := json.Marshal([]any{map[string]any{"targets": targets, "labels": map[string]string{"from": "agents"}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(p.agents+".new", text, 0o600))
	require.NoError(t, os.Rename(p.agents+".new", p.agents))
}

// values are a metric's of the run, by rank: from the agents' pages, or, where from is empty, as the gateway writes them. Several series
// of a rank fail the test.
func (p *prometheus) values(t *testing.T, metric, from string) map[int]float64 {
	t.Helper()
	values := map[int]float64{}
	for _, series := range p.Query(fmt.Sprintf("%s{nemo_run_id=%q,from=%q}", metric, run, from)) {
		rank, err := strconv.Atoi(series.Labels["rank"])
		require.NoError(t, err, "%v", series)
		require.NotContains(t, values, rank, "%v", series)
		require.Equal(t, fmt.Sprintf("%s-rank%d", run, rank), series.Labels["instance"])
		values[rank] = series.Value
	}
	return values
}
