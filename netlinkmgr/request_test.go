package netlinkmgr

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr/nldev"
)

// TestRequests holds whole messages against bytes that Linux 6.1 took from this
// package or from iproute2 (which differ in nothing but sequence numbers).
func TestRequests(t *testing.T) {
	zero := Device{}
	dump := about(zero, "RES_CTX_GET")
	dump.Dump = true
	for _, c := range []struct {
		r         Request
		hex, text string
	}{
		{newLink("rxe0", "rxe", "eth0"), "300000000314050000000000000000000900020072786530000000000800410072786500090033006574683000000000",
			`RDMA_NLDEV_CMD_NEWLINK DEV_NAME="rxe0" LINK_TYPE="rxe" NDEV_NAME="eth0"`},
		{newLink("abc", "rxe", "eth"), "28000000031405000000000000000000080002006162630008004100727865000800330065746800",
			`RDMA_NLDEV_CMD_NEWLINK DEV_NAME="abc" LINK_TYPE="rxe" NDEV_NAME="eth"`},
		{about(Device{Index: 3}, "DELLINK"), "180000000414050000000000000000000800010003000000", "RDMA_NLDEV_CMD_DELLINK DEV_INDEX=3"},
		{Request{Command: "GET", Dump: true}, "10000000011405030000000000000000", "RDMA_NLDEV_CMD_GET"},
		{about(zero, "PORT_GET", "PORT_INDEX", uint32(1)), "2000000005140500000000000000000008000100000000000800030001000000", "RDMA_NLDEV_CMD_PORT_GET DEV_INDEX=0 PORT_INDEX=1"},
		{dump, "180000001614050300000000000000000800010000000000", "RDMA_NLDEV_CMD_RES_CTX_GET DEV_INDEX=0"},
		{Request{Command: "SYS_GET"}, "10000000061405000000000000000000", "RDMA_NLDEV_CMD_SYS_GET"},
		{Request{Command: "SYS_SET", Attrs: nldev.Encode("NETNS_MODE", uint8(1))}, "180000000714050000000000000000000500420001000000", "RDMA_NLDEV_CMD_SYS_SET NETNS_MODE=1"},
		{about(zero, "GET_CHARDEV", "CHARDEV_TYPE", "uverbs"), "240000000f140500000000000000000008000100000000000b0045007576657262730000", `RDMA_NLDEV_CMD_GET_CHARDEV DEV_INDEX=0 CHARDEV_TYPE="uverbs"`},
		{Request{Command: "GET", Attrs: []byte{5, 0, 99, 0, 1, 0, 0, 0}}, "180000000114050000000000000000000500630001000000", "RDMA_NLDEV_CMD_GET attribute 99=01"},
	} {
		require.Equal(t, c.hex, hex.EncodeToString(c.r.Message()), c.text)
		require.Equal(t, c.text, c.r.String())
	}
}
