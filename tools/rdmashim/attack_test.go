package main

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// visitor is a client of a server, as a program makes it that wants more than
// the server gives.
type visitor struct {
	*uapi.Device
	t     *testing.T
	qp    uapi.QP
	buf   []byte
	mr    uapi.MR
	there uapi.Region // as the server told it
	conn  net.Conn    // control connection, of those that have one
}

const (
	visitorBuf = 4096
	secret     = "a secret of the first client"
)

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	d, err := uapi.Open("soft:"+clitest.Host(), uapi.OpenConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	g := &visitor{Device: d, t: t, buf: make([]byte, visitorBuf)}
	g.mr = must.Get(d.RegMR(g.buf, uapi.AccessLocalWrite|uapi.AccessRemoteWrite))(t)
	return g
}

// move reads or writes the beginning of a region of the server's, or sends; the
// immediate, of operations that have one, is 17.
func (g *visitor) move(op uapi.Op, at uapi.Region, n uint64) uapi.Status {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	_, err := g.Post(g.qp, []uapi.WR{{Op: op, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: g.mr, Length: n}}, RemoteAddr: at.Addr, RKey: at.RKey, Imm: 17}})
	require.NoError(g.t, err)
	wc, _ := g.WaitWR(ctx, g.qp, 0)
	return wc.Status
}

// visit is a client with a control connection, by the words of its hello.
func visit(t *testing.T, addr, job string, params any) *visitor {
	g := newVisitor(t)
	conn := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { conn.Close() })
	c := peer.Client{Conn: peer.NewConn(conn)}
	require.NoError(t, c.Greet(job, params, time.Minute, func() error { return nil }))
	g.conn = conn
	return g
}

// connect introduces the visitor's queue pair, and memory.
func (g *visitor) connect(mrs ...uapi.MR) *visitor {
	g.t.Helper()
	g.qp = must.Get(g.CreateQP(8, 4))(g.t)
	server := must.Get(g.ConnectOver(g.t.Context(), g.conn, g.qp, mrs, nil))(g.t)
	g.there = server.Regions[0]
	return g
}

// visitServer is a client of 'rdmashim server'.
func visitServer(t *testing.T, addr string) *visitor {
	return visit(t, addr, "server", map[string]any{"name": "file", "bytes": visitorBuf}).connect()
}

// visitPerf is a client of 'rdmashim perf server'.
func visitPerf(t *testing.T, addr string) *visitor {
	c := perf.Config{Op: perf.Read, Sizes: []int{visitorBuf}, Iterations: 1, QPs: 1, Depth: 1, List: 1, Moderation: 1, Spread: visitorBuf}
	g := visit(t, addr, "perf server", c)
	room := must.Get(g.RegMR(make([]byte, c.Bytes()), 0))(t)
	return g.connect(room)
}

// visitCM is a client of a server that is reached by address and port. A sample
// tells where its page is.
func visitCM(t *testing.T, addr string) *visitor {
	g := newVisitor(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	g.qp, err = g.Dial(ctx, addr, uapi.DialConfig{QPConfig: uapi.QPConfig{SendDepth: 32, RecvDepth: 32, MaxRdAtomic: 1}})
	require.NoError(t, err)
	info := must.Get(g.QueryConn(g.qp))(t)
	g.there = uapi.Region{Addr: binary.BigEndian.Uint64(info.PrivateData), RKey: binary.BigEndian.Uint32(info.PrivateData[8:])}
	return g
}

// requireApart: with the first client's key and address the second one reads
// and writes nothing.
func requireApart(t *testing.T, there uapi.Region, visit func() *visitor) {
	t.Helper()
	for _, op := range []uapi.Op{uapi.OpRead, uapi.OpWrite} {
		thief := visit()
		require.Equal(t, uapi.WCRemAccessErr, thief.move(op, there, visitorBuf), op)
		require.NotContains(t, string(thief.buf), secret)
	}
}

// TestClientsAreApart: on no server does a client that knows another's key and
// address reach its memory.
func TestClientsAreApart(t *testing.T) {
	for _, c := range []struct {
		name  string
		serve func(t *testing.T) (addr string)
		visit func(t *testing.T, addr string) *visitor
	}{
		{"server", func(t *testing.T) string { return serve(t).Addr }, visitServer},
		{"server with a named device", func(t *testing.T) string { return serve(t, "--device", "soft:"+clitest.Host()).Addr }, visitServer},
		{"perf server", func(t *testing.T) string { return clitest.Serve(t, "perf", "server", "--listen", "127.0.0.1:0").Addr }, visitPerf},
		{"sample write-read", func(t *testing.T) string { return startCM(t, "sample", "write-read", "server").Addr }, visitCM},
		{"sample write-imm", func(t *testing.T) string { return startCM(t, "sample", "write-imm", "server").Addr }, visitCM},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := c.serve(t)
			honest := c.visit(t, addr)
			copy(honest.buf, secret)
			require.Equal(t, uapi.WCSuccess, honest.move(uapi.OpWrite, honest.there, visitorBuf))
			requireApart(t, honest.there, func() *visitor { return c.visit(t, addr) })
			clear(honest.buf)
			require.Equal(t, uapi.WCSuccess, honest.move(uapi.OpRead, honest.there, visitorBuf))
			require.Equal(t, secret, string(honest.buf[:len(secret)]))
		})
	}
}
