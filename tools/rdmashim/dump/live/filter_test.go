package live

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"

	"github.com/rdmashim/rdmashim/rnic/wire/wiretest"
)

const testdata = "../../../../tests/testdata"

// passes runs a filter as the kernel would.
func passes(t *testing.T, ethernet bool, port uint16, frame []byte) bool {
	t.Helper()
	vm, err := bpf.NewVM(filter(ethernet, port))
	require.NoError(t, err)
	n, err := vm.Run(frame)
	require.NoError(t, err)
	return n > 0
}

// header is an IP and UDP header, with nothing behind.
func header(v6 bool, protocol byte, fragment uint16, options int, src, dst uint16) []byte {
	var b []byte
	if v6 {
		b = make([]byte, ip6Len)
		b[0], b[6] = 0x60, protocol
	} else {
		b = make([]byte, 20+4*options)
		b[0], b[9] = byte(0x45+options), protocol
		b[6], b[7] = byte(fragment>>8), byte(fragment)
	}
	return append(b, byte(src>>8), byte(src), byte(dst>>8), byte(dst), 0, 8, 0, 0)
}

func TestFilter(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame []byte
		want  bool
	}{
		{"to the port", header(false, 17, 0x4000, 0, 9, 4791), true},
		{"from the port", header(false, 17, 0, 0, 4791, 9), true},
		{"other ports", header(false, 17, 0, 0, 4790, 4792), false},
		{"TCP", header(false, 6, 0, 0, 4791, 4791), false},
		{"options", header(false, 17, 0, 3, 9, 4791), true},
		{"first fragment", header(false, 17, 0x2000, 0, 9, 4791), true},
		{"later fragment", header(false, 17, 1, 0, 4791, 4791), false},
		{"IPv6", header(true, 17, 0, 0, 9, 4791), true},
		{"from, IPv6", header(true, 17, 0, 0, 4791, 9), true},
		{"other ports, IPv6", header(true, 17, 0, 0, 1, 2), false},
		{"TCP, IPv6", header(true, 6, 0, 0, 4791, 4791), false},
		{"cut", header(false, 17, 0, 0, 9, 4791)[:22], false},
		{"cut IPv6", header(true, 17, 0, 0, 9, 4791)[:41], false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, passes(t, false, 4791, c.frame), "without Ethernet")
			kind := []byte{0x08, 0x00}
			if c.frame[0]>>4 == 6 {
				kind = []byte{0x86, 0xdd}
			}
			frame := append(append(make([]byte, 12), kind...), c.frame...)
			require.Equal(t, c.want, passes(t, true, 4791, frame), "with Ethernet")
		})
	}
	for _, kind := range []uint16{typeVLAN, typeQinQ, typeOldQinQ} {
		require.True(t, passes(t, true, 4791, append(make([]byte, 12), byte(kind>>8), byte(kind), 0, 1, 8, 0)))
	}
	require.False(t, passes(t, true, 4791, append(make([]byte, 12), 8, 6, 0, 1)), "ARP")
	require.False(t, passes(t, true, 4791, nil))
	require.False(t, passes(t, false, 4791, []byte{0x50}))
}

// TestFilterRecordings: every recorded packet passes, and none with another port.
func TestFilterRecordings(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(testdata, "*.pcap"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		list, err := wiretest.Read(b)
		require.NoError(t, err)
		for _, f := range list {
			ip := header(f.Src.Addr().Is6(), 17, 0x4000, 0, f.Src.Port(), f.Dst.Port())
			require.True(t, passes(t, false, 4791, append(ip, f.UDP...)))
			require.False(t, passes(t, false, 1, append(ip, f.UDP...)))
		}
	}
}
