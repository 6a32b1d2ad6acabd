package dump

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// traffic writes n bytes from one soft device to another, does two atomics,
// reads the bytes back, and returns the counters of the first device. It has
// the options first, and both have the others. Both devices are closed then.
func traffic(t *testing.T, first, both string, n int) map[string]uint64 {
	t.Helper()
	a := must.Get(uapi.Open("soft?mtu=1024&"+both+"&"+first, uapi.OpenConfig{}))(t)
	defer a.Close()
	b := must.Get(uapi.Open("soft?mtu=1024&"+both, uapi.OpenConfig{}))(t)
	defer b.Close()
	x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 16}, n)
	for i := range x.Buf {
		x.Buf[i] = byte(i * i)
	}
	all, word := uapi.SGE{MR: x.MR, Length: uint64(n)}, uapi.SGE{MR: x.MR, Length: 8}
	x.Must(x.Write(x.QP, all, x.Peer))
	x.Next(1)
	for range 2 {
		x.Must(x.FetchAdd(x.QP, word, x.Peer, 1))
		x.Next(1)
	}
	x.Must(x.Read(x.QP, all, x.Peer))
	x.Next(1)
	require.Equal(t, y.Buf, x.Buf)
	s := must.Get(a.Stats())(t)
	return s.Ports[0].Counters
}
