//go:build guest && linux

package guesttest

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/rdmashim/rdmashim/tests/must"
)

// events is a running 'rdmashim monitor -j'.
type events struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	left  []map[string]any // read and not asked for yet
}

// startMonitor gives a monitor that has named its sources.
func startMonitor(t *testing.T, user uint32) *events {
	cmd := exec.CommandContext(t.Context(), "rdmashim", "monitor", "-j")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	out := must.Get(cmd.StdoutPipe())(t)
	errs := must.Get(cmd.StderrPipe())(t)
	require.NoError(t, cmd.Start())
	said := bufio.NewScanner(errs)
	require.True(t, said.Scan())
	require.Contains(t, said.Text(), "messages about network devices")
	t.Log(said.Text())
	return &events{t: t, cmd: cmd, lines: bufio.NewScanner(out)}
}

// until finds an event of the kind with the values, among those that have come
// and were not taken yet (events after a change have no order), or waits for
// it.
func (e *events) until(kind string, values map[string]any) {
	e.t.Helper()
	for i := 0; ; i++ {
		if i == len(e.left) && !e.read() {
			e.t.Fatalf("the monitor ended before %s %v", kind, values)
		}
		got := e.left[i]
		same := got["event_type"] == kind
		for k, v := range values {
			same = same && got[k] == v
		}
		if same {
			e.left = slices.Delete(e.left, i, i+1)
			return
		}
	}
}

func (e *events) read() bool {
	if !e.lines.Scan() {
		return false
	}
	var got map[string]any
	require.NoError(e.t, json.Unmarshal(e.lines.Bytes(), &got), e.lines.Text())
	require.NotEqual(e.t, "LOST", got["event_type"])
	e.t.Log(e.lines.Text())
	e.left = append(e.left, got)
	return true
}

// end interrupts the monitor, which is no failure.
func (e *events) end() {
	e.t.Helper()
	require.NoError(e.t, e.cmd.Process.Signal(os.Interrupt))
	for e.lines.Scan() {
	}
	require.NoError(e.t, e.cmd.Wait())
}

// TestMonitor: the events of a link, from one end to another beginning.
func TestMonitor(t *testing.T) {
	m := noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	ensure(t, "ta") // loads the modules
	e := startMonitor(t, 0)
	require.NoError(t, m.Rename(t.Context(), "rxe0", "stop"))
	e.until("RENAME", map[string]any{"rdma_dev": "stop"})
	require.NoError(t, netlink.LinkSetMTU(link(t, "ta"), 4200))
	e.until("NETDEV_STATE", map[string]any{"rdma_dev": "stop", "port": 1.0, "netdev_name": "ta", "mtu": 4200.0})
	require.NoError(t, netlink.LinkSetDown(link(t, "tb")))
	e.until("NETDEV_STATE", map[string]any{"state": "no-carrier"})
	require.NoError(t, netlink.LinkSetUp(link(t, "tb")))
	e.until("NETDEV_STATE", map[string]any{"state": "up"})
	require.NoError(t, m.DeleteLink(t.Context(), "stop"))
	e.until("UNREGISTER", map[string]any{"rdma_dev": "stop"})
	require.Equal(t, outcome{}, ours(t, "link add next type rxe netdev ta"))
	e.until("REGISTER", map[string]any{"rdma_dev": "next"})
	e.end()
}

// TestMonitorUnprivileged: any user may watch.
func TestMonitorUnprivileged(t *testing.T) {
	noLinks(t)
	veth(t, "ta", "tb", "10.78.0.1/24")
	e := startMonitor(t, nobody)
	ensure(t, "ta")
	e.until("REGISTER", map[string]any{"rdma_dev": "rxe0"})
	e.end()
}
