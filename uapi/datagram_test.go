package uapi_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

const qkey = 0x11111111

// dgrams is a side with a queue pair for datagrams.
type dgrams struct {
	*uapi.Device
	t   *testing.T
	qp  uapi.QP
	at  netip.AddrPort
	buf []byte
	mr  uapi.MR
}

func newDgrams(t *testing.T, c *uapi.Device, config uapi.QPConfig) *dgrams {
	t.Helper()
	config.Type, config.QKey, config.SendDepth, config.RecvDepth = uapi.TypeUD, qkey, 8, 8
	d := &dgrams{Device: c, t: t, qp: mustQP(t, c, config), buf: make([]byte, 1<<16)}
	e := must.Get(c.LocalEndpoint(d.qp))(t)
	require.EqualValues(t, d.qp, e.QPN)
	d.at = e.Addr
	d.mr = must.Get(c.RegMR(d.buf, uapi.AccessLocalWrite))(t)
	t.Cleanup(func() { require.NoError(t, c.DeregMR(d.mr)) })
	return d
}

func (d *dgrams) way(to *dgrams) uapi.AH {
	d.t.Helper()
	ah := must.Get(d.CreateAH(to.at, uapi.AHConfig{}))(d.t)
	d.t.Cleanup(func() { require.NoError(d.t, d.DestroyAH(ah)) })
	return ah
}

func (d *dgrams) next() uapi.WC {
	d.t.Helper()
	var wc [1]uapi.WC
	n := must.Get(d.WaitCQ(d.t.Context(), d.qp, wc[:]))(d.t)
	require.Equal(d.t, 1, n)
	return wc[0]
}

// Mistakes are errors of the call, with advice.
func TestDatagramErrors(t *testing.T) {
	t.Parallel()
	ca, cb := uapitest.Pair(t, "")
	a, b := newDgrams(t, ca, uapi.QPConfig{}), newDgrams(t, cb, uapi.QPConfig{})
	ah, foreign := a.way(b), b.way(a)
	to := func(wr uapi.WR) uapi.WR {
		if wr.AH == 0 {
			wr.AH = ah
		}
		if wr.RemoteQPN == 0 {
			wr.RemoteQPN = uint32(b.qp)
		}
		return wr
	}
	piece := func(n uint64) []uapi.SGE { return []uapi.SGE{{MR: a.mr, Length: n}} }
	for name, c := range map[string]struct {
		wr   uapi.WR
		want error
		text string
	}{
		"no address":      {uapi.WR{Op: uapi.OpSend}, syscall.EINVAL, "PostSendTo"},
		"a write":         {to(uapi.WR{Op: uapi.OpWrite}), syscall.EINVAL, "only be sent"},
		"too long":        {to(uapi.WR{Op: uapi.OpSend, SGE: piece(4097)}), syscall.EMSGSIZE, "4096"},
		"much data":       {to(uapi.WR{Op: uapi.OpSend, Data: make([]byte, 4097)}), syscall.EMSGSIZE, "4096"},
		"wild length":     {to(uapi.WR{Op: uapi.OpSend, SGE: piece(1 << 63)}), syscall.EMSGSIZE, "4096"},
		"another's":       {to(uapi.WR{Op: uapi.OpSend, AH: foreign}), syscall.EBADF, "address handle"},
		"negative":        {to(uapi.WR{Op: uapi.OpSend, AH: -1}), syscall.EBADF, "address handle"},
		"number":          {to(uapi.WR{Op: uapi.OpSend, RemoteQPN: 1 << 24}), syscall.EINVAL, "24 bits"},
		"short receive":   {uapi.WR{Op: uapi.OpRecv, SGE: piece(39)}, syscall.EINVAL, "GRHLen"},
		"no room at all":  {uapi.WR{Op: uapi.OpRecv}, syscall.EINVAL, "GRHLen"},
		"too many pieces": {to(uapi.WR{Op: uapi.OpSend, SGE: append(piece(1), piece(1)...)}), syscall.EINVAL, "pieces"},
	} {
		n, err := a.Post(a.qp, []uapi.WR{c.wr})
		require.Zero(t, n, name)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.text, name)
	}
	_, err := a.PostSend(a.qp, a.mr, 1)
	require.ErrorContains(t, err, "PostSendTo")
	e := must.Get(b.LocalEndpoint(b.qp))(t)
	require.ErrorIs(t, a.ConnectQP(a.qp, e), syscall.EINVAL)

	rc := mustQP(t, a.Device, uapi.QPConfig{SendDepth: 1})
	_, err = a.PostSendTo(rc, ah, 1, 1, a.mr, 0, 1)
	require.ErrorIs(t, err, syscall.EINVAL)
	require.ErrorContains(t, err, "TypeUD")
	_, err = a.CreateQPWith(uapi.QPConfig{Type: 9})
	require.ErrorIs(t, err, syscall.EINVAL)
	_, err = a.CreateQPWith(uapi.QPConfig{QKey: 3})
	require.ErrorIs(t, err, syscall.EINVAL)

	// The error state flushes, as for connections.
	must.Get(a.PostRecv(a.qp, a.mr, 0, 100))(t)
	require.NoError(t, a.Disconnect(a.qp))
	require.Equal(t, uapi.WCWRFlushErr, a.next().Status)
	must.Get(a.PostSendTo(a.qp, ah, uint32(b.qp), qkey, a.mr, 0, 1))(t)
	require.Equal(t, uapi.WCWRFlushErr, a.next().Status)
}

func TestDatagramSource(t *testing.T) {
	const v4 = "450000340000400040110000" + "0a000001" + "0a000002"
	const zeros = "0000000000000000000000000000000000000000"
	for header, want := range map[string]string{
		zeros + v4: "10.0.0.1",
		// Over IPv6, and IPv4 behind bytes that look like IPv6: its checksum is
		// right.
		"6000000000341140" + "fd000000000000000000000000000001" + "fd000000000000000000000000000002": "fd00::1",
		"60" + zeros[2:] + "4500003400004000401126b7" + "0a000001" + "0a000002":                      "10.0.0.1",
		zeros + zeros:         "",
		zeros + v4[:38]:       "",
		"50" + zeros + zeros:  "",
		zeros + v4[:2] + "ff": "",
	} {
		raw := must.Get(hex.DecodeString(header))(t)
		addr, err := uapi.DatagramSource(raw)
		if want == "" {
			require.ErrorIs(t, err, syscall.EINVAL, header)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, addr.String())
	}
}

// Datagrams: a queue pair without a connection exchanges messages with several
// peers.
func Example_datagrams() {
	client, server := openBoth("sim?net=datagrams")
	defer client.Close()
	defer server.Close()

	// The server posts a receive, with room for the route header.
	const key = 0x11111111
	config := uapi.QPConfig{Type: uapi.TypeUD, QKey: key, SendDepth: 8, RecvDepth: 8}
	qs, err := server.CreateQPWith(config)
	check(err)
	inbox := make([]byte, uapi.GRHLen+100)
	in, err := server.RegMR(inbox, uapi.AccessLocalWrite)
	check(err)
	_, err = server.PostRecv(qs, in, 0, uint64(len(inbox)))
	check(err)
	there, err := server.LocalEndpoint(qs) // a client must know its Addr, its QPN and the key
	check(err)
	qc, err := client.CreateQPWith(config)
	check(err)
	out, err := client.RegMR([]byte("hello"), 0)
	check(err)
	ah, err := client.CreateAH(there.Addr, uapi.AHConfig{})
	check(err)
	_, err = client.PostSendTo(qc, ah, there.QPN, key, out, 0, 5)
	check(err)

	var wc [1]uapi.WC
	for n := 0; n == 0; check(err) {
		n, err = server.PollCQ(qs, wc[:])
	}
	from, err := uapi.DatagramSource(inbox)
	check(err)
	here, err := client.LocalEndpoint(qc)
	check(err)
	fmt.Printf("%s\n", inbox[uapi.GRHLen:wc[0].ByteLen])
	fmt.Println(from == here.Addr.Addr(), wc[0].SrcQPN == uint32(qc))
	// Output:
	// hello
	// true true
}
