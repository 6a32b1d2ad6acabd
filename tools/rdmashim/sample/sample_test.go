package sample

import (
	"context"
	"io"
	"net/netip"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{Command()} })
}

// spied is a ping that tells where it keeps a client's data.
type spied struct {
	ping
	seen chan spiedMemory
}

type spiedMemory struct {
	buf    []byte
	region uapi.Region
}

func (s *spied) accept(ctx context.Context, c *conn, r *uapi.Request) error {
	err := s.ping.accept(ctx, c, r)
	if err == nil {
		var info uapi.MRInfo
		info, err = c.RDMA.QueryMR(c.Memory[0].MR)
		s.seen <- spiedMemory{c.Memory[0].Buf, info.Region()}
	}
	return err
}

// open opens a soft device for the test.
func open(t *testing.T) *uapi.Device {
	t.Helper()
	d := must.Get(uapi.Open("soft:"+clitest.Host(), uapi.OpenConfig{}))(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// serveHere serves any number of clients in this process, until the test ends.
func serveHere(t *testing.T, s *role) (addr string) {
	t.Helper()
	s.stdout = io.Discard
	server := open(t)
	l := must.Get(server.Listen(":0", uapi.ListenConfig{}))(t)
	at := must.Get(server.QueryDevice())(t)
	ctx, cancel := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			r, err := l.Accept(ctx)
			if err != nil {
				return
			}
			clients.Go(func() { _ = s.serveOne(ctx, r) })
		}
	})
	t.Cleanup(func() {
		cancel()
		clients.Wait()
		require.NoError(t, l.Close())
	})
	return netip.AddrPortFrom(at.Address.Addr(), l.Addr().Port()).String()
}

// TestPingClientsAreApart: ping's server tells no client where its memory is; a
// client that guesses it gains nothing.
func TestPingClientsAreApart(t *testing.T) {
	service := &spied{seen: make(chan spiedMemory, 3)}
	s := &role{program: service}
	s.seats.Most = 10
	addr := serveHere(t, s)
	d := open(t)
	buf := make([]byte, 64)
	mr := must.Get(d.RegMR(buf, uapi.AccessLocalWrite))(t)
	dial := func() uapi.QP {
		qp := must.Get(d.Dial(t.Context(), addr, uapi.DialConfig{QPConfig: sampleQP}))(t)
		return qp
	}
	dial()
	memory := <-service.seen
	const secret = "a secret of the first client"
	copy(memory.buf, secret)
	for _, op := range []uapi.Op{uapi.OpRead, uapi.OpWrite} {
		thief := dial()
		_, err := d.Post(thief, []uapi.WR{{Op: op, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: mr, Length: 64}}, RemoteAddr: memory.region.Addr, RKey: memory.region.RKey}})
		require.NoError(t, err)
		_, err = d.WaitWR(t.Context(), thief, 0)
		require.Equal(t, uapi.WCRemAccessErr, uapi.StatusOf(err), op)
		require.NotContains(t, string(buf), secret)
	}
	require.Equal(t, secret, string(memory.buf[:len(secret)]))
}

// TestSeats: a server says with its rejection that it has no seat, which the
// client tells.
func TestSeats(t *testing.T) {
	s := &role{program: &ping{}}
	s.seats.Most = 1
	addr := serveHere(t, s)
	other := netip.MustParseAddrPort("127.9.9.9:1")
	require.NoError(t, s.seats.Take(other))
	client := &role{program: &ping{count: 1, size: pingMinSize}, device: "soft:" + clitest.Host(), stdout: io.Discard, stderr: io.Discard}
	err := client.call(t.Context(), addr)
	require.ErrorContains(t, err, "refused by the peer's program")
	require.ErrorContains(t, err, peer.ErrNoSeat.Error())
	s.seats.Give(other)
	require.NoError(t, client.call(t.Context(), addr))
}
