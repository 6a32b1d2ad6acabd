package dump

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestDumpLive: a demo of soft devices on a network of its own, watched beside
// it.
func TestDumpLive(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	path := filepath.Join(t.TempDir(), "live.pcapng")
	cmd := clitest.Tool(t, "dump", "--live", "lo", "-w", path, "--summary", "-j")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr := must.Get(cmd.StderrPipe())(t)
	require.NoError(t, cmd.Start())
	told := bufio.NewReader(stderr)
	line, err := told.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "capturing UDP port 4791 on lo")

	counters := traffic(t, "stats=off&shm=off", "loss=3%&seed=5", 300_000)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	line = must.Get(told.ReadString('\n'))(t)
	require.Contains(t, line, "packets written to "+path)
	require.NoError(t, cmd.Wait())

	var s Summary
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &s))
	require.Len(t, s.Pairs, 1)
	p := s.Pairs[0]
	require.NotNil(t, p.A.QPN)
	require.NotNil(t, p.B.QPN)
	require.EqualValues(t, 1, p.AB.Messages.Write)
	require.EqualValues(t, 2, p.AB.Messages.Atomic)
	require.EqualValues(t, 300_000, p.AB.Read)
	require.NotZero(t, p.AB.Retransmitted)
	require.NotNil(t, p.AB.RTT)
	require.NotZero(t, counters["fault_loss"])
	// Every packet was taken apart, and is in the file as tshark reads it.
	lines, whole := compare(t, path)
	require.Len(t, lines, int(p.Packets))
	require.Equal(t, len(lines), whole)
	for _, l := range lines {
		require.Equal(t, "lo", l.Interface)
		require.Equal(t, "ok", l.ICRC)
	}
}

// TestDumpLiveNowhere: a run that can write nothing does not say that a capture
// began.
func TestDumpLiveNowhere(t *testing.T) {
	if !netns.Own(t) {
		return
	}
	o := clitest.RunTool(t, "dump", "--live", "lo", "-w", "/nonexistent/dir/file")
	require.Equal(t, 1, o.Code)
	require.Contains(t, o.Stderr, "no such file")
	require.Equal(t, 1, strings.Count(o.Stderr, "\n"), o.Stderr)
}

// TestDumpLiveUnprivileged: a user that may not capture is told the needed
// privilege.
func TestDumpLiveUnprivileged(t *testing.T) {
	o := clitest.Finish(t, clitest.WithoutRoot(t, "dump", "--live", "lo"))
	require.Equal(t, 1, o.Code, o.Stderr)
	require.Contains(t, o.Stderr, "needs root or CAP_NET_RAW")
	require.Equal(t, 1, strings.Count(o.Stderr, "\n"))
}
