package dump

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
)

// TestOthers: a file of which nothing was understood is an error, in each form
// of output with the kinds; one of known protocols is not, and not silent.
func TestOthers(t *testing.T) {
	t.Parallel()
	file := func(records ...[]byte) string {
		var b bytes.Buffer
		w := pcapgo.NewWriter(&b)
		require.NoError(t, w.WriteFileHeader(65535, layers.LinkTypeEthernet))
		for _, r := range records {
			require.NoError(t, w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(1, 0), CaptureLength: len(r), Length: len(r)}, r))
		}
		path := filepath.Join(t.TempDir(), "x.pcap")
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
		return path
	}
	ether := func(kind uint16, payload []byte) []byte {
		return append(append(make([]byte, 12), byte(kind>>8), byte(kind)), payload...)
	}
	v1 := ether(0x8915, make([]byte, 60))
	arp := ether(0x0806, append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, make([]byte, 20)...))
	strange, mixed, plain := file(v1, v1), file(arp, v1, v1), file(arp)
	for _, flags := range [][]string{nil, {"--json"}, {"--summary"}, {"--summary", "--json"}} {
		o := clitest.RunTool(t, append([]string{"dump", strange}, flags...)...)
		require.Equal(t, 1, o.Code, flags)
		require.Contains(t, o.Stderr, "2 records, 2 not understood: 2 RoCEv1")
		o = clitest.RunTool(t, append([]string{"dump", mixed}, flags...)...).Well(t)
		require.Equal(t, "rdmashim: 3 records, 2 not understood: 2 RoCEv1; 1 ARP\n", o.Stderr)
		if len(flags) > 0 && flags[len(flags)-1] == "--json" {
			s := clitest.Decode[Summary](t, o)
			require.Equal(t, []other{{"RoCEv1", 2, false}, {"ARP", 1, true}}, s.Others)
		}
		o = clitest.RunTool(t, append([]string{"dump", plain}, flags...)...).Well(t)
		require.Equal(t, "rdmashim: 1 records, 0 not understood: 1 ARP\n", o.Stderr)
	}
}
