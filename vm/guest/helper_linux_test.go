package guest

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
)

func TestFormatRecord(t *testing.T) {
	// As Documentation/ABI/testing/dev-kmsg shows them.
	for in, want := range map[string]string{
		"7,160,424069,-;pci_root PNP0A03:00: host bridge window (ignored)\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n": "[    0.424069] pci_root PNP0A03:00: host bridge window (ignored)",
		"6,339,5140900,-;NET: Registered protocol family 10\n":                                                          "[    5.140900] NET: Registered protocol family 10",
		"30,340,5690716,-,caller=T1;udevd[80]: starting version 181\n":                                                  "[    5.690716] udevd[80]: starting version 181",
		"12,9,1,-;a;b\n":                  "[    0.000001] a;b",
		`1,2,3,-;a\x09b\x0ac\x5cd\xzz\x1`: "[    0.000003] a\tb c\\d\\xzz\\x1",
		"no record":                       "no record",
	} {
		require.Equal(t, want+"\n", string(formatRecord([]byte(in))))
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "tool")
	require.NoError(t, os.WriteFile(tool, nil, 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o755))
	env := []string{"PATH=/nowhere", "PATH=/nowhere:" + dir} // the last one counts
	got := must.Get(lookPath("tool", env))(t)
	require.Equal(t, tool, got)
	got = must.Get(lookPath(tool, nil))(t)
	require.Equal(t, tool, got)
	for _, name := range []string{"none", "dir", dir, "/nowhere/tool"} {
		_, err := lookPath(name, env)
		require.ErrorContains(t, err, name)
	}
}

func TestPeerName(t *testing.T) {
	require.Equal(t, []string{"eth1", "eth9p", "netp"}, []string{peerName("eth0"), peerName("eth9"), peerName("net")})
}

func TestMainRefusesAHost(t *testing.T) {
	require.ErrorContains(t, Main(t.Context()), "inside a guest")
}

// execHere runs a command through the helper, on this machine.
func execHere(t *testing.T, e Exec, frames ...frame) (Done, string, string) {
	t.Helper()
	ours, theirs := net.Pipe()
	g := &helper{conn: NewConn(theirs)}
	input := newCommandInput()
	done := make(chan Done, 1)
	go func() {
		done <- g.exec(e, input)
		theirs.Close()
	}()
	var stdout, stderr bytes.Buffer
	for c := NewConn(ours); ; {
		kind, payload, err := c.Read()
		if err != nil {
			return <-done, stdout.String(), stderr.String()
		}
		switch kind {
		case KindStdout:
			stdout.Write(payload)
		case KindStderr:
			stderr.Write(payload)
		case KindStdinWant:
			if len(frames) > 0 {
				input.take(frames[0])
				frames = frames[1:]
			}
		}
	}
}

func TestExec(t *testing.T) {
	sh := func(script string) Exec {
		return Exec{Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "A=b"}, Dir: t.TempDir()}
	}
	d, stdout, stderr := execHere(t, sh("echo $A; echo err >&2; exit 5"))
	require.Equal(t, []string{"b\n", "err\n"}, []string{stdout, stderr})
	require.Equal(t, Done{Code: 5}, d)

	d, _, _ = execHere(t, sh("kill -9 $$"))
	require.Equal(t, Done{Signal: 9}, d)

	d, stdout, _ = execHere(t, sh("cat; pwd")) // no input: empty
	require.Equal(t, Done{}, d)
	require.NotEmpty(t, stdout)

	e := sh("cat")
	e.Stdin = true
	d, stdout, _ = execHere(t, e, frame{KindStdin, []byte("one ")}, frame{KindStdin, []byte("two")}, frame{KindStdinEnd, nil})
	require.Equal(t, Done{}, d)
	require.Equal(t, "one two", stdout)

	// Input without a reader holds nothing up.
	e = sh("exec <&-; sleep 0.05; exit 1")
	e.Stdin = true
	d, _, _ = execHere(t, e, frame{KindStdin, make([]byte, MaxPayload)}, frame{KindStdin, make([]byte, MaxPayload)})
	require.Equal(t, 1, d.Code)

	e = Exec{Args: []string{"cat"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdin: true}
	d, _, _ = execHere(t, e, frame{KindQuit, nil})
	require.Equal(t, Done{Signal: int(unix.SIGQUIT)}, d)

	d, _, _ = execHere(t, Exec{Args: []string{"no-such-command"}})
	require.True(t, d.NotFound)
	d, _, _ = execHere(t, Exec{})
	require.NotEmpty(t, d.Error)
}

// TestExecOrphan: a child that keeps the output open does not hold the end up
// for ever.
func TestExecOrphan(t *testing.T) {
	e := Exec{Args: []string{"sh", "-c", "sleep 60 & echo started"}, Env: []string{"PATH=" + os.Getenv("PATH")}}
	d, stdout, _ := execHere(t, e)
	require.Equal(t, "started\n", stdout)
	require.Equal(t, Done{}, d)
}
