package shm

import (
	"crypto/rand"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/child"
	"github.com/rdmashim/rdmashim/tests/must"
)

var neighbour = own(9)

// own is an address of no device, and of no other process with these tests.
func own(n byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, n}), uint16(1024+os.Getpid()%30000))
}

func ownNonce() (n nonce) {
	rand.Read(n[:])
	return n
}

// dialAs sends a hello of a hostile process over a connection of its own.
func dialAs(t *testing.T, to *Link, h hello) *net.UnixConn {
	t.Helper()
	c := must.Get(net.DialUnix("unixpacket", nil, unixAddr(to.local)))(t)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, sendHello(c, &h))
	return c
}

// requireRefused waits until the device hangs up without an answer.
func requireRefused(t *testing.T, c *net.UnixConn) {
	t.Helper()
	n, err := c.Read(make([]byte, helloLen))
	require.True(t, n == 0 && (err == nil || err == io.EOF), "%d bytes, %v", n, err)
}

// A peer asleep, whose bell is full and blocks, does not stop the sender.
func TestFullBell(t *testing.T) {
	a := listen(t)
	mem, b, life := silent(t, neighbour)
	require.NoError(t, unix.SetNonblock(b.fd, false))
	full, err := dialBell("", life)
	require.NoError(t, err)
	defer unix.Close(full)
	for err == nil { // full for whatever socket
		err = unix.Send(full, []byte{1}, unix.MSG_DONTWAIT)
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NotZero(t, a.Meet(neighbour))
	for i := range 1000 {
		word(mem, asleepAt).Store(1)
		require.NoError(t, a.Send([]link.Packet{{Peer: neighbour, Head: head(i, 0)}}))
		require.Zero(t, word(mem, asleepAt).Load(), "the bell was rung")
	}
	require.EqualValues(t, 1000, counter(a, "shm_sent_pkts"))
}

// silent is a neighbour that is met, and reads neither its ring nor its socket
// from then on, until the test ends. It returns its ring, its bell and its
// nonce.
func silent(t *testing.T, at netip.AddrPort) ([]byte, *bell, nonce) {
	t.Helper()
	mem, ring, err := newMemory()
	require.NoError(t, err)
	life, b := ownNonce(), new(bell)
	require.NoError(t, b.open("", 0, life))
	end := make(chan struct{})
	answer(t, at, func(c *net.UnixConn, _ hello) {
		if sendHello(c, &hello{device: at, memory: memorySize, nonce: life}, ring) == nil {
			<-end
		}
	})
	t.Cleanup(func() {
		close(end)
		b.close()
		unix.Close(ring)
		unmap(mem)
	})
	return mem, b, life
}

// A peer that takes no notes of arenas costs a bounded number of them.
func TestUnreadNotes(t *testing.T) {
	a := listen(t)
	silent(t, neighbour)
	require.NotZero(t, a.Meet(neighbour))
	before := runtime.NumGoroutine()
	for i := range 4 * maxArenas {
		mem := must.Get(arena.Alloc(4096))(t)
		p := link.Packet{Peer: neighbour, Head: head(i, 64), Payload: mem[:64]}
		p.Loan = wire.Loan{Region: a.Lease(mem), Pair: new(wire.Lease)}
		require.NoError(t, a.Send([]link.Packet{p}))
		a.Recall(p.Loan.Region)
		arena.Free(mem)
	}
	require.Less(t, runtime.NumGoroutine(), before+2*maxArenas+10)
}

// A process that claims the address of another device, with its own nonce or
// that device's, with the token of that device's attempt to meet the claimant,
// or while nobody is there, is not met, and ends no connection.
func TestClaimedAddress(t *testing.T) {
	for family, at := range map[string]string{"IPv4": "127.0.0.1:0", "IPv6": "[::1]:0"} {
		t.Run(family, func(t *testing.T) { claimedAddress(t, netip.MustParseAddrPort(at)) })
	}
}

func claimedAddress(t *testing.T, at netip.AddrPort) {
	a, b := listenAt(t, at), listenAt(t, at)
	claimant, nobody := netip.AddrPortFrom(at.Addr(), neighbour.Port()), netip.AddrPortFrom(at.Addr(), 1)
	require.NotZero(t, a.Meet(b.local))
	require.NotZero(t, b.Meet(a.local))
	tokens := make(chan nonce, 1+redials)
	end := make(chan struct{})
	answer(t, claimant, func(c *net.UnixConn, h hello) {
		tokens <- h.token
		<-end
	})
	defer close(end)
	go b.Meet(claimant)
	token := <-tokens
	var liars []*net.UnixConn
	for _, h := range []hello{
		{device: b.local, memory: memorySize, nonce: nonce{1}},
		{device: b.local, memory: memorySize, nonce: b.nonce},
		{device: b.local, memory: memorySize, nonce: nonce{1}, token: token},
		{device: nobody, memory: memorySize, nonce: nonce{1}},
		{device: a.local, memory: memorySize, nonce: nonce{1}},
	} {
		liars = append(liars, dialAs(t, a, h))
	}
	for _, c := range liars {
		requireRefused(t, c)
	}
	require.True(t, a.hasWarned("claim"))
	require.Zero(t, counter(a, "shm_deaths")+counter(b, "shm_deaths"))
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("goes on"))}))
	require.Equal(t, "goes on", string(receive(t, b, 1)[0]))
	require.NoError(t, b.Send([]link.Packet{packet(a, 0, []byte("goes on"))}))
	require.Equal(t, "goes on", string(receive(t, a, 1)[0]))
	require.EqualValues(t, 1, counter(a, "shm_rcvd_pkts"))
	require.EqualValues(t, 5, counter(a, "shm_fallback"))
}

func (l *Link) hasWarned(kind string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.warned[kind]
}

// A dialer that ends cannot confirm its claim: it is no liar.
func TestEndedDialer(t *testing.T) {
	a := listen(t)
	before := held(t)
	c := dialAs(t, a, hello{device: neighbour, memory: memorySize, nonce: nonce{1}})
	require.NoError(t, c.Close())
	until(func() bool { return counter(a, "shm_fallback") == 1 })
	requireHeld(t, before, a)
	require.False(t, a.hasWarned("claim"))
}

// A process that dials and says nothing takes a bounded share of the device,
// and does not keep another process from being met.
func TestSilentDialers(t *testing.T) {
	a := listen(t)
	child.Hold(t, 10*maxStrangers, "unixpacket", socketName(a.local))
	b := listen(t)
	require.NotZero(t, b.Meet(a.local))
	until(func() bool { return a.conns() <= maxStrangers+1 })
	require.LessOrEqual(t, a.conns(), maxStrangers+1)
}

// A silent neighbour delays nobody but those that ask for it, and Close not
// even then.
func TestSilentNeighbour(t *testing.T) {
	a, b := listen(t), listen(t)
	asked, end := make(chan struct{}, 1), make(chan struct{})
	answer(t, neighbour, func(*net.UnixConn, hello) {
		asked <- struct{}{}
		<-end
	})
	defer close(end)
	met := make(chan uint64)
	for range 2 {
		go func() { met <- a.Meet(neighbour) }()
	}
	<-asked
	require.NotZero(t, a.Meet(b.local))
	require.NotZero(t, b.Meet(a.local))
	// A dialer that claims the neighbour's address waits alone for its answer.
	dialAs(t, a, hello{device: neighbour, memory: memorySize})
	<-asked
	require.NoError(t, a.Close())
	require.Zero(t, <-met)
	require.Zero(t, <-met)
}
