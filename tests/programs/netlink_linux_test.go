//go:build amd64 || arm64

package programs

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestNetlink: sockets of NETLINK_RDMA, and that libibverbs finds its devices
// by them.
func TestNetlink(t *testing.T) {
	needs(t, "ibv_devices")
	for _, c := range []struct{ line, says string }{
		{"netlink", inChild() + "netlink is as it should be\n"},
		{"discovery", "1 devices, the first is rxe0, found by netlink\n"},
		{"discovery refuse", "1 devices, the first is rxe0, found by sysfs\n"},
	} {
		t.Run(c.line, func(t *testing.T) {
			args := strings.Fields(c.line)
			args[0] = compile(t, args[0], "-rdynamic", "-ldl")
			device, _ := newDevice()
			require.Regexp(t, "^"+c.says+"$", start(t, device, args...).ends(0))
		})
	}
}

// TestRDMA: iproute2's rdma prints the rows that it printed on rdma_rxe, but
// for names and numbers, also of programs that run beside it.
func TestRDMA(t *testing.T) {
	needs(t, "rdma", "ibv_rc_pingpong", "rping")
	run := must.Get(os.MkdirTemp("", "rdma"))(t) // other tests' programs run elsewhere
	t.Cleanup(func() { os.RemoveAll(run) })      // beside what cleans up behind programs
	t.Setenv("XDG_RUNTIME_DIR", run)
	device, _ := newDevice()
	require.Equal(t, "link rxe0/1 state ACTIVE physical_state LINK_UP netdev lo \n", start(t, device, "rdma", "link", "show").ends(0))
	require.Regexp(t, `^0: rxe0: node_type ca node_guid [0-9a-f:]{19} sys_image_guid [0-9a-f:]{19} \n$`, start(t, device, "rdma", "dev", "show").ends(0))
	require.Equal(t, "0: rxe0: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0 \n", start(t, device, "rdma", "resource", "show").ends(0))

	here, _ := newDevice()
	port := freePort(t)
	pingpong := start(t, here, "ibv_rc_pingpong", "-g", "0", "-p", port)
	pingpong.listens(port)
	there, addr := newDevice()
	listener := start(t, there, "rping", "-s", "-a", addr)
	for deadline := time.Now().Add(patience); ; {
		said := start(t, device, "rdma", "resource", "show").ends(0)
		if said == "0: rxe0: pd 2 cq 1 qp 1 cm_id 1 mr 1 ctx 2 srq 0 \n" {
			break
		}
		require.True(t, time.Now().Before(deadline), "%s", said)
	}

	// A program that asks and hangs up does no harm.
	asked, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "rdmashim", "*", "netlink"))
	require.NoError(t, err)
	require.Len(t, asked, 2)
	const get = "\x10\x00\x00\x00\x01\x14\x01\x03\x00\x00\x00\x00\x00\x00\x00\x00" // a dump of devices
	for range 50 {
		c := must.Get(net.Dial("unix", asked[0]))(t)
		must.Get(c.Write([]byte(strings.Repeat(get, 100))))(t)
		require.NoError(t, c.Close())
	}

	recorded := must.Get(netlinktest.Recorded())(t)
	for _, call := range recorded.Calls {
		if call.Args == "-d dev show" || call.Args == "statistic show" { // other capabilities; no counters by netlink
			continue
		}
		t.Run(call.Args, func(t *testing.T) {
			said := start(t, device, append([]string{"rdma", "-j"}, strings.Fields(call.Args)...)...).ends(0)
			found := rows(said)
			require.NotEmpty(t, found, "%s", said)
			require.Subset(t, rows(call.Output), found, "%s", said)
			if kind := strings.TrimPrefix(call.Args, "resource show "); slices.Contains([]string{"qp", "cq", "mr"}, kind) {
				require.Contains(t, said, fmt.Sprintf(`"pid":%d,"comm":"ibv_rc_pingpong"`, pingpong.program()))
			}
		})
	}
	if supervisor == "" {
		// A stopped program is left out, and named on standard error: its
		// kernel is in it.
		var stopped unix.WaitStatus
		require.NoError(t, pingpong.Process.Signal(unix.SIGSTOP))
		must.Get(unix.Wait4(pingpong.Process.Pid, &stopped, unix.WUNTRACED, nil))(t)
		require.True(t, stopped.Stopped())
		require.Equal(t, fmt.Sprintf("rdmashim: process %d (ibv_rc_pingpong) is stopped: its objects are not listed\n", pingpong.Process.Pid)+
			"0: rxe0: pd 1 cq 0 qp 0 cm_id 1 mr 0 ctx 1 srq 0 \n", start(t, device, "rdma", "resource", "show").ends(0))
	}
	for _, p := range []*process{pingpong, listener} {
		require.NoError(t, p.Process.Kill())
		_ = p.Wait()
	}
	require.Equal(t, "0: rxe0: pd 0 cq 0 qp 0 cm_id 0 mr 0 ctx 0 srq 0 \n", start(t, device, "rdma", "resource", "show").ends(0))
}

// Texts that differ between devices and programs.
var (
	differentNumber = regexp.MustCompile(`":\d+`)
	differentText   = regexp.MustCompile(`("(?:comm|netdev|\w+_guid|\w*[rl]key|(?:src|dst)-addr)"):"[^"]*"`)
)

// rows are the objects that rdma -j printed, without what may differ.
func rows(text string) []string {
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "[{"), "}]")
	if text == "" || text == "[]" {
		return nil
	}
	text = differentText.ReplaceAllString(differentNumber.ReplaceAllString(text, `":0`), `$1:""`)
	return strings.Split(text, "},{")
}
