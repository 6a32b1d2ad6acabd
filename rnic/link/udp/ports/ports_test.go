package ports

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// kernelSockets is /proc/net/udp with rdma_rxe's socket, as Linux 6.1 shows it.
const kernelSockets = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
   58: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1351 2 000000008c3957b8 0
`

func TestParseUDP(t *testing.T) {
	list := Parse(kernelSockets + `  59: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 77 2 0 0
  58: 00000000000000000000000001000000:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1352 2 00000000b5405695 0
  60: 0100:12B7 x
`)
	require.Len(t, list, 3)
	require.Equal(t, "0.0.0.0:4791", list[0].Local.String())
	require.Equal(t, "1351", list[0].Inode)
	require.Equal(t, "127.0.0.1:53", list[1].Local.String())
	require.Equal(t, 101, list[1].UID)
	require.Equal(t, "[::1]:4791", list[2].Local.String())
}

func FuzzUDP(f *testing.F) {
	f.Add(kernelSockets)
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Parse(text) {
			if !s.Local.Addr().IsValid() {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// TestHolder finds this process, and none once the port is free.
func TestHolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems do not name the holder of a port; run it on Linux")
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	at := c.LocalAddr().(*net.UDPAddr).AddrPort()
	root := os.DirFS("/")
	comm, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	require.Contains(t, Holder(root, at), string(comm[:len(comm)-1]))
	require.Regexp(t, `^process \d+ \(.+\)$`, Holder(root, at))
	require.Empty(t, Holder(root, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.77"), at.Port())))
	require.NoError(t, c.Close())
	require.Empty(t, Holder(root, at))
	_, known := Sockets(os.DirFS(filepath.Join(t.TempDir())))
	require.False(t, known)
}

// TestHolderHidden: a socket of which no process is seen is another user's, or
// the kernel's.
func TestHolderHidden(t *testing.T) {
	root := os.DirFS(t.TempDir())
	require.Empty(t, Holder(root, netip.MustParseAddrPort("10.0.0.1:4791")))
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/proc/self/net", 0o755))
	require.NoError(t, os.WriteFile(dir+"/proc/self/net/udp", []byte(kernelSockets+
		"  59: 0100007F:12B8 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 77 2 0 0\n"), 0o644))
	require.Equal(t, "the kernel, likely rdma_rxe", Holder(os.DirFS(dir), netip.MustParseAddrPort("10.0.0.1:4791")))
	require.Equal(t, "a process of user 101", Holder(os.DirFS(dir), netip.MustParseAddrPort("127.0.0.1:4792")))
}
