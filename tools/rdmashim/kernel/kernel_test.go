package kernel

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/minikernel"
)

const childEnv = "KERNEL_TEST_SCRIPT"

// TestMain runs a script in a process of its own, where devices begin at sim0.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	cmd := Command()
	cmd.SetArgs(os.Args[1:])
	if err := cmd.Execute(); err != nil {
		os.Exit(1)
	}
}

// TestDocumentedScript: docs/kernel.rdma prints what docs/kernel.md shows,
// where … stands for anything.
func TestDocumentedScript(t *testing.T) {
	page := must.Get(os.ReadFile("../../../docs/kernel.md"))(t)
	shown := regexp.MustCompile("(?s)```text\n(.*?)```").FindSubmatch(page)[1]
	child := exec.Command(os.Args[0], "../../../docs/kernel.rdma")
	child.Env = append(os.Environ(), childEnv+"=1")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	want := strings.Split(string(shown), "\n")
	got := strings.Split(string(out), "\n")
	for i := range want {
		require.Less(t, i, len(got), want[i])
		pattern := strings.ReplaceAll(regexp.QuoteMeta(want[i]), "…", `\S+`)
		require.Regexp(t, "^"+pattern+"$", got[i], "line %d", i+1)
	}
	require.Len(t, got, len(want))
}

// script runs commands and gives their output.
func script(t *testing.T, lines ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := Run("script", strings.NewReader(strings.Join(lines, "\n")), &out)
	require.Empty(t, minikernel.Machine().Lsmod(), "a console leaves nothing loaded")
	return out.String(), err
}

// TestConsole: two devices of one network, every kind of transfer, and the end
// of a device with all that is on it.
func TestConsole(t *testing.T) {
	c := newConsole(&bytes.Buffer{})
	require.NoError(t, c.run("insmod sim ?net=console ?net=console"))
	devices := c.devices()
	require.Len(t, devices, 2)
	for i, line := range []string{
		"open " + devices[0], "reg_mr a 64 local_write,remote_read", "create_qp 8 8",
		"open " + devices[1], "reg_mr b 64 local_write,remote_write", "create_qp 8 8",
		"connect qp1 qp2", "fill a over the net",
		"post_recv qp2 b 0 64", "post_send qp1 a 12", "poll_cq qp2 1", "poll_cq qp1 1",
		"post_read qp2 b 32 a a 12", "poll_cq qp2 1", "query_mr b", "query_qp qp2",
	} {
		require.NoError(t, c.run(line), "line %d", i)
	}
	require.Equal(t, "over the net", string(c.regions["b"].buf[:12]))
	require.Equal(t, "over the net", string(c.regions["b"].buf[32:44]))
	require.ErrorIs(t, c.run("rmmod sim"), syscall.EBUSY)
	require.NoError(t, c.run("open "+devices[0]))
	require.NoError(t, c.run("reg_mr more 64"))
	require.Same(t, c.regions["a"].device, c.regions["more"].device, "open goes back to a device")
	require.NoError(t, c.run("close "+devices[0]))
	require.ErrorIs(t, c.run("post_send qp1 a 12"), syscall.EBADF)
	require.ErrorIs(t, c.run("insmod sim"), syscall.EEXIST)
	c.end()
}

// TestScriptErrors: an error names the script's line, what was wrong, and what
// to do.
func TestScriptErrors(t *testing.T) {
	for line, want := range map[string]string{
		"mount":                      `script:2: there is no command "mount"; help lists them`,
		"post_write qp1":             "script:2: usage: post_write QP MR OFFSET REMOTE RKEY BYTES, for example: post_write qp1",
		"exit now":                   "script:2: usage: exit",
		"reg_mr buf many":            `BYTES is a number of 32 bits, such as 4096 or 0x1000, and not "many"`,
		"reg_mr buf 64 remote_wrong": `there is no access "remote_wrong", but local_write,`,
		"destroy_qp qp9":             "there is no queue pair qp9; create_qp makes one",
		"dereg_mr buf":               "there is no region buf; reg_mr makes one",
		"rmmod soft":                 "rmmod soft: the module is not loaded",
		"cat /dev/null":              `there is no "null"`,
		"open soft9":                 "the mini kernel has no device soft9",
		"trace maybe":                `trace is on or off, not "maybe"`,
		"! lsmod":                    "script:2: lsmod succeeded, and was to fail",
	} {
		_, err := script(t, "# comment", line)
		require.ErrorContains(t, err, want, line)
		require.ErrorContains(t, err, "script:2: ", line)
	}
	out := must.Get(script(t, "! rmmod soft", "exit", "bogus"))(t)
	require.Contains(t, out, "> ! rmmod soft\nENOENT: rmmod soft: the module is not loaded")
}

// TestScriptUnwritten: a script whose answers cannot be written has failed.
func TestScriptUnwritten(t *testing.T) {
	r, w := io.Pipe()
	require.NoError(t, r.CloseWithError(syscall.ENOSPC))
	for _, end := range []string{"", "\nexit"} {
		require.ErrorIs(t, Run("script", strings.NewReader("lsmod"+end), w), syscall.ENOSPC)
	}
}

// TestExamples: the example of each command is one that the console takes.
func TestExamples(t *testing.T) {
	out := must.Get(script(t, "help"))(t)
	for _, cmd := range commands {
		require.Contains(t, out, "    "+cmd.example+"\n")
		words := strings.Fields(cmd.example)
		require.Equal(t, cmd.name, words[0])
		c := newConsole(&bytes.Buffer{})
		for _, name := range words[1:] {
			c.pairs[name], c.regions[name] = &pair{}, &region{}
		}
		delete(c.regions, "recv")
		delete(c.regions, "send")
		_, err := c.read(&command{args: strings.NewReplacer("MR", "NAME", "REMOTE", "NAME", "RKEY", "NAME").Replace(cmd.args)}, words[1:])
		require.NoError(t, err, cmd.example)
		c.proc.Exit()
	}
}

// TestAttach: a relay's lines are carried out at the other end, which keeps its
// modules; a script ends with the first failure, and its text.
func TestAttach(t *testing.T) {
	here, there := net.Pipe()
	c := newConsole(there)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answers(c, there)
		there.Close()
	}()
	var out bytes.Buffer
	err := relay(here, &scriptLines{bufio.NewScanner(strings.NewReader("lsmod\nps\nlsmod\n"))}, &out)
	require.ErrorContains(t, err, "this kernel serves no programs")
	require.Equal(t, 1, strings.Count(out.String(), "Module"))
	here.Close()
	<-ended
	c.end()
}
