package main

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// visitor is a client of a server, as a program makes it that wants more than the
// server gives.
type visitor struct {
	*uapi.Context
	t     *testing.T
	qp    uapi.QP
	buf   []byte
	mr    uapi.MR
	there uapi.Region // as the server told it
	conn  net.Conn    // control connection, of those that have one
}

// leave goes without a word.
func (g *visitor) leave() { _ = g.conn.Close() }

const (
	visitorBuf = 4096
	secret     = "a secret of the first client"
)

func newVisitor(t *testing.T) *visitor {
	t.Helper()
	c, err := uapi.Open("soft:" + nextSoft())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	g := &visitor{Context: c, t: t, buf: make([]byte, visitorBuf)}
	g.mr, err = c.RegMR(g.buf, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	require.NoError(t, err)
	return g
}

// move reads or writes the beginning of a region of the server's.
func (g *visitor) move(op uapi.Op, at uapi.Region, n uint64) uapi.Status {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	_, err := g.Post(g.qp, []uapi.WR{{Op: op, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: g.mr, Length: n}}, RemoteAddr: at.Addr, RKey: at.RKey}})
	require.NoError(g.t, err)
	var wc [1]uapi.WC
	_, err = g.WaitCQ(ctx, g.qp, wc[:])
	require.NoError(g.t, err)
	return wc[0].Status
}

// visitServer is a client of 'rdmashim server'.
func visitServer(t *testing.T, addr string) *visitor {
	g := newVisitor(t)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	file, err := os.Open(writeFile(t, visitorBuf))
	require.NoError(t, err)
	defer file.Close()
	s := &clientSession{file: file, bytes: visitorBuf}
	s.ctl, s.rdma = newControl(conn), g.Context
	t.Cleanup(func() { conn.Close(); require.NoError(t, s.close()) })
	require.NoError(t, s.greet())
	regions, err := s.connect(t.Context())
	require.NoError(t, err)
	g.qp, g.there, g.conn = s.qp, regions[0], conn
	return g
}

// visitPerf is a client of 'rdmashim perf server'.
func visitPerf(t *testing.T, addr string) *visitor {
	g := newVisitor(t)
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	ctl := newControl(conn)
	c := perf.Config{Op: perf.Read, Sizes: []int{visitorBuf}, Iterations: 1, QPs: 1, Depth: 1, List: 1, Moderation: 1, Spread: visitorBuf}
	require.NoError(t, ctl.send(perfHello{Perf: perfVersion, Config: c}))
	var w welcome
	require.NoError(t, ctl.receive(&w, time.Minute))
	require.Empty(t, w.Error)
	room, err := g.RegMR(make([]byte, c.Bytes()), 0)
	require.NoError(t, err)
	g.qp, err = g.CreateQP(4, 0)
	require.NoError(t, err)
	peer, err := g.ConnectOver(t.Context(), conn, g.qp, []uapi.MR{room}, nil)
	require.NoError(t, err)
	g.there, g.conn = peer.Regions[0], conn
	return g
}

// visitCM is a client of a server that is reached by address and port. A sample
// tells where its page is.
func visitCM(t *testing.T, addr string) *visitor {
	g := newVisitor(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	g.qp, err = g.Dial(ctx, addr, uapi.DialConfig{QPConfig: sampleQP()})
	require.NoError(t, err)
	info, err := g.QueryConn(g.qp)
	require.NoError(t, err)
	g.there = uapi.Region{Addr: binary.BigEndian.Uint64(info.PrivateData), RKey: binary.BigEndian.Uint32(info.PrivateData[8:])}
	return g
}

// requireApart: with the first client's key and address the second one reads and
// writes nothing.
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
		{"server", func(t *testing.T) string {
			addr, _, _ := startTestServer(t)
			return addr
		}, visitServer},
		{"server with a named device", func(t *testing.T) string {
			addr, _, _ := startTestServer(t, "--device", "soft:"+nextSoft())
			return addr
		}, visitServer},
		{"perf server", func(t *testing.T) string {
			addr, _, _ := startListening(t, "perf", "server", "--listen", "127.0.0.1:0")
			return addr
		}, visitPerf},
		{"sample write-read", func(t *testing.T) string { return startCM(t, "sample", "write-read", "server").addr }, visitCM},
		{"sample write-imm", func(t *testing.T) string { return startCM(t, "sample", "write-imm", "server").addr }, visitCM},
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

// spied is a service that tells where it keeps a client's data.
type spied struct {
	cmService
	seen chan spiedMemory
}

type spiedMemory struct {
	buf    []byte
	region uapi.Region
}

func (s spied) accept(ctx context.Context, c *cmConn, r *uapi.Request) error {
	err := s.cmService.accept(ctx, c, r)
	if err == nil {
		var info uapi.MRInfo
		info, err = c.rdma.QueryMR(c.memory[0].mr)
		s.seen <- spiedMemory{c.memory[0].buf, info.Region()}
	}
	return err
}

// serveHere serves any number of clients in this process, until the test ends.
func serveHere(t *testing.T, service cmService, seats *clientSeats) (addr string) {
	t.Helper()
	server, err := uapi.Open("soft:" + nextSoft())
	require.NoError(t, err)
	l, err := server.Listen(":0")
	require.NoError(t, err)
	at, err := server.QueryDevice()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			clients.Go(func() { _ = serveRequest(ctx, r, service, seats, io.Discard) })
		}
	})
	t.Cleanup(func() {
		cancel()
		clients.Wait()
		require.NoError(t, l.Close())
		require.NoError(t, server.Close())
	})
	return netip.AddrPortFrom(at.Address.Addr(), l.Addr().Port()).String()
}

// TestPingClientsAreApart: ping's server tells nobody where its memory is; whoever
// guesses it gains nothing.
func TestPingClientsAreApart(t *testing.T) {
	t.Parallel()
	service := spied{&pingOptions{}, make(chan spiedMemory, 3)}
	addr := serveHere(t, service, &clientSeats{most: 10})
	visit := func() *visitor { return visitCM(t, addr) }
	visit()
	memory := <-service.seen
	copy(memory.buf, secret)
	requireApart(t, memory.region, visit)
	require.Equal(t, secret, string(memory.buf[:len(secret)]))
}
