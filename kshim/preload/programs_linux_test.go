package preload

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDevinfo: the distribution's libibverbs finds the device and asks all that
// it can ask.
func TestDevinfo(t *testing.T) {
	l := libraries(t, "ibv_devices", "ibv_devinfo")
	device, addr := newDevice()
	require.Regexp(t, `(?m)^    rxe0 +\t[0-9a-f]{16}$`, start(t, l, device, "ibv_devices").ends(0))

	list := start(t, l, device, "ls", "-l", "/dev/infiniband").ends(0)
	require.Regexp(t, `(?m)^crw-rw-rw-.* 231, +192 .* uverbs0$`, list)
	require.NotContains(t, list, "ls:")
	text := start(t, l, device, "ibv_devinfo", "-v").ends(0)
	guid := regexp.MustCompile(`[0-9a-f]{4}(:[0-9a-f]{4}){3}`)
	for _, want := range []string{
		"hca_id:\trxe0", "vendor_id:\t\t\t0xffffff", "state:\t\t\tPORT_ACTIVE (4)", "link_layer:\t\tEthernet",
		"GID[  0]:\t\t::ffff:" + addr + ", RoCE v2",
	} {
		require.Contains(t, text, want)
	}
	require.Len(t, guid.FindAllString(text, -1), 2)
}

// TestPingpong: two processes exchange messages over each kind of queue pair,
// by polling and by events, also where packets are lost, and with receives
// that queue pairs share.
func TestPingpong(t *testing.T) {
	l := libraries(t, "ibv_rc_pingpong")
	for name, c := range map[string]struct {
		options string
		args    []string
	}{
		"polling":     {"", []string{"ibv_rc_pingpong", "-n", "1000"}},
		"events":      {"", []string{"ibv_rc_pingpong", "-n", "1000", "-e"}},
		"loss":        {"?loss=1%&seed=3", []string{"ibv_rc_pingpong", "-n", "500", "-c"}},
		"UD":          {"", []string{"ibv_ud_pingpong", "-n", "1000", "-s", "1024"}},
		"UD, events":  {"", []string{"ibv_ud_pingpong", "-n", "1000", "-e"}},
		"UC":          {"", []string{"ibv_uc_pingpong", "-n", "1000"}},
		"UC, events":  {"", []string{"ibv_uc_pingpong", "-n", "1000", "-e"}},
		"SRQ":         {"", []string{"ibv_srq_pingpong", "-n", "1000"}},
		"SRQ, events": {"?loss=1%&seed=3", []string{"ibv_srq_pingpong", "-n", "500", "-e"}},
	} {
		t.Run(name, func(t *testing.T) {
			here, _ := newDevice()
			there, addr := newDevice()
			port := freePort(t)
			args := append(c.args, "-g", "0", "-p", port)
			server := start(t, l, there+c.options, args...)
			server.listens(port)
			client := start(t, l, here+c.options, append(args, addr)...)
			require.Contains(t, client.ends(0), "iters in")
			server.ends(0)
		})
	}
}
