package uapi_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// gso=off and gro=off reach the socket, and messages arrive either way.
func TestOffloadOptions(t *testing.T) {
	for _, options := range []string{"", "&gso=off", "&gro=off", "&gso=off&gro=off", "&gso=on&gro=on"} {
		t.Run(strings.TrimPrefix(options, "&"), func(t *testing.T) {
			device := "soft?port=0&shm=off" + options
			x, y := uapitest.Connect(t, openDevice(t, device), openDevice(t, device))
			for i := range x.Buf {
				x.Buf[i] = byte(i * 13)
			}
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, uint64(len(x.Buf))))
			x.Next(1)
			require.True(t, bytes.Equal(x.Buf, y.Buf))
			if runtime.GOOS != "linux" {
				return
			}
			sent := must.Get(x.Counters())(t)
			got := must.Get(y.Counters())(t)
			if strings.Contains(options, "gso=off") {
				require.Zero(t, sent["gso_sends"])
				require.Zero(t, got["gro_reads"], "plain datagrams are not merged on loopback")
				return
			}
			require.Positive(t, sent["gso_pkts"])
			if strings.Contains(options, "gro=off") {
				require.Zero(t, got["gro_reads"])
			} else {
				require.Positive(t, got["gro_pkts"])
			}
		})
	}
}
