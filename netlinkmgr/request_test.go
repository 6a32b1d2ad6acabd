package netlinkmgr

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/nldev"
)

// TestRequests holds requests against bytes that Linux 6.1 took from this
// package or from iproute2.
func TestRequests(t *testing.T) {
	zero := Device{}
	dump := about(zero, "RES_CTX_GET")
	dump.Dump = true
	for _, c := range []struct {
		r          Request
		typ, flags uint16
		hex        string
	}{
		{newLink("rxe0", "rxe", "eth0"), 0x1403, 5, "0900020072786530000000000800410072786500090033006574683000000000"},
		{newLink("abc", "rxe", "eth"), 0x1403, 5, "080002006162630008004100727865000800330065746800"},
		{about(Device{Index: 3}, "DELLINK"), 0x1404, 5, "0800010003000000"},
		{Request{Command: "GET", Dump: true}, 0x1401, 0x305, ""},
		{about(zero, "PORT_GET", "PORT_INDEX", uint32(1)), 0x1405, 5, "08000100000000000800030001000000"},
		{dump, 0x1416, 0x305, "0800010000000000"},
		{Request{Command: "SYS_SET", Attrs: nldev.Encode("NETNS_MODE", uint8(1))}, 0x1407, 5, "0500420001000000"},
		{about(zero, "GET_CHARDEV", "CHARDEV_TYPE", "uverbs"), 0x140f, 5, "08000100000000000b0045007576657262730000"},
	} {
		require.Equal(t, c.hex, hex.EncodeToString(c.r.Attrs), c.r.Command)
		require.Equal(t, c.typ, c.r.Type(), c.r.Command)
		require.Equal(t, c.flags, c.r.Flags(), c.r.Command)
	}
}
