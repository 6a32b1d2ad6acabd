//go:build amd64 || arm64

package programs

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevinfo: the distribution's libibverbs finds the device, asks all that it
// can ask, and is told what rdma_rxe tells it.
func TestDevinfo(t *testing.T) {
	needs(t, "ibv_devices", "ibv_devinfo")
	device, addr := newDevice()
	require.Regexp(t, `(?m)^    rxe0 +\t[0-9a-f]{16}$`, start(t, device, "ibv_devices").ends(0))

	list := start(t, device, "ls", "-l", "/dev/infiniband").ends(0)
	require.Regexp(t, `(?m)^crw-rw-rw-.* 231, +192 .* uverbs0$`, list)
	require.NotContains(t, list, "ls:")
	text := start(t, device, "ibv_devinfo", "-v").ends(0)
	require.Contains(t, text, "\tGID[  0]:\t\t::ffff:"+addr+", RoCE v2\n")
	recorded, err := os.ReadFile("testdata/devinfo-rxe.txt")
	require.NoError(t, err)
	require.Equal(t, alike(string(recorded)), alike(text))
}

var (
	remark   = regexp.MustCompile(`(?m)^#.*\n`)
	guid     = regexp.MustCompile(`(?m)[0-9a-f]{4}(:[0-9a-f]{4}){3}$`)
	gidLines = regexp.MustCompile(`(\t+GID\[ +\d+\]:\t\t[0-9a-f:.]+, RoCE v2\n)+`)
	vectors  = regexp.MustCompile(`(num_comp_vectors:\t\t)\d+`)
)

// alike returns what ibv_devinfo says of a device without what is the device's
// own, GUIDs and addresses, and the machine's: rxe has a completion vector for
// each processor, and they do nothing. The longest message is later rxe's.
func alike(text string) string {
	text = strings.Replace(text, "max_msg_sz:\t\t0x800000\n", "max_msg_sz:\t\t0x80000000\n", 1)
	text = guid.ReplaceAllString(remark.ReplaceAllString(text, ""), "GUID")
	return vectors.ReplaceAllString(gidLines.ReplaceAllString(text, "\t\t\tGIDs\n"), "${1}N")
}

// TestPingpong: two processes exchange messages over each kind of queue pair,
// by polling and by events, also where packets are lost, and with receives
// that queue pairs share.
func TestPingpong(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	for _, c := range some([]struct {
		name, options string
		args          []string
	}{
		{"polling", "", []string{"ibv_rc_pingpong", "-n", "1000"}},
		{"events", "", []string{"ibv_rc_pingpong", "-n", "1000", "-e"}},
		{"loss", "?loss=1%&seed=3", []string{"ibv_rc_pingpong", "-n", "500", "-c"}},
		{"UD", "", []string{"ibv_ud_pingpong", "-n", "1000", "-s", "1024"}},
		{"UD, events", "", []string{"ibv_ud_pingpong", "-n", "1000", "-e"}},
		{"UC", "", []string{"ibv_uc_pingpong", "-n", "1000"}},
		{"UC, events", "", []string{"ibv_uc_pingpong", "-n", "1000", "-e"}},
		{"SRQ", "", []string{"ibv_srq_pingpong", "-n", "1000"}},
		{"SRQ, events", "?loss=1%&seed=3", []string{"ibv_srq_pingpong", "-n", "500", "-e"}},
	}, 1) {
		t.Run(c.name, func(t *testing.T) {
			here, _ := newDevice()
			there, addr := newDevice()
			port := freePort(t)
			args := append(c.args, "-g", "0", "-p", port)
			server := start(t, there+c.options, args...)
			server.listens(port)
			client := start(t, here+c.options, append(args, addr)...)
			require.Contains(t, client.ends(0), "iters in")
			server.ends(0)
		})
	}
}
