package shm

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// holds is what meeting devices costs the process.
type holds struct{ maps, descriptors int }

func held(t *testing.T) (h holds) {
	t.Helper()
	maps := must.Get(os.ReadFile("/proc/self/maps"))(t)
	fds := must.Get(os.ReadDir("/proc/self/fd"))(t)
	return holds{strings.Count(string(maps), "/memfd:rdmashim"), len(fds)}
}

// answer is a device of the name at, whose answer to a hello is f's. The test
// ends with all of its connections.
func answer(t *testing.T, at netip.AddrPort, f func(c *net.UnixConn, h hello)) {
	listener := must.Get(net.ListenUnix("unixpacket", unixAddr(at)))(t)
	var all sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if h, _, err := receiveHello(c, 0); err == nil {
					f(c, h)
				}
			})
		}
	})
}

// requireHeld waits until the process holds so much again, and l has no ring
// and no socket to a peer. Goroutines are counted by TestMain.
func requireHeld(t *testing.T, want holds, l *Link) {
	t.Helper()
	// A dialer that has gone may not be accepted yet: one look has to see all.
	var now holds
	var rings, sockets int
	until(func() bool {
		rings, sockets, now = l.ringsLeft(), l.conns(), held(t)
		return rings == 0 && sockets == 0 && now == want
	})
	require.Zero(t, rings)
	require.Zero(t, sockets)
	require.Equal(t, want, now)
}

// open is listen for a device that the test closes.
func open(t *testing.T) *Link {
	t.Helper()
	return openAt(t, netip.MustParseAddrPort("127.0.0.1:0"))
}

// Devices that open, meet and close leave no map, descriptor or socket behind.
func TestCyclesLeaveNothing(t *testing.T) {
	cycles := 1000
	if testing.Short() {
		cycles = 50
	}
	a := listen(t)
	before := held(t)
	batch, lent := make([]link.Packet, 64), uint64(0)
	for i := range cycles {
		b := open(t)
		require.NotZero(t, a.Meet(b.local))
		require.NotZero(t, b.Meet(a.local))
		require.NoError(t, b.Send([]link.Packet{packet(a, 0, []byte("last"))}))
		mem := must.Get(arena.Alloc(64 << 10))(t)
		p := packet(a, 0, mem[:4096])
		p.Loan = wire.Loan{Region: b.Lease(mem), Pair: new(wire.Lease)}
		for k := 0; k <= i%50 || i == 49 && counter(b, "shm_ref_bytes") == 0; k++ { // the arena is shown, mapped, and lent, or not yet
			require.NoError(t, b.Send([]link.Packet{p}))
			must.Get(a.Recv(batch))(t)
		}
		if i%2 == 0 {
			b.Recall(p.Loan.Region)
			arena.Free(mem)
		}
		require.NoError(t, b.Close())
		if i%2 == 1 {
			arena.Free(mem)
		}
		lent += counter(b, "shm_ref_bytes")
	}
	require.NotZero(t, lent)
	until(func() bool { return a.ins.Load() == 0 })
	must.Get(a.Recv(batch))(t) // the last packets are not used any more
	requireHeld(t, before, a)
	// A life counts twice if one socket hangs up before the other is read.
	require.GreaterOrEqual(t, counter(a, "shm_deaths"), uint64(cycles))
}

// A device that closes while it meets another one keeps no ring.
func TestMeetBesideClose(t *testing.T) {
	b := listen(t)
	before := held(t)
	for i := range 200 {
		a := open(t)
		met := make(chan struct{})
		go func() {
			defer close(met)
			a.Meet(b.local)
		}()
		until := time.Now().Add(time.Duration(i%40) * 10 * time.Microsecond)
		for time.Now().Before(until) { // a moment of meeting, another one each time
		}
		require.NoError(t, a.Close())
		<-met
		requireHeld(t, before, b)
	}
}

// A process that is killed hangs up. A dialer that does so after any step, its
// death told or not, leaves nothing behind in the device that it dialled.
func TestDialerDies(t *testing.T) {
	a := listen(t)
	mem := must.Get(arena.Alloc(64 << 10))(t)
	defer arena.Free(mem)
	id, _, _ := arena.Find(mem)
	name := own(10)
	answer(t, name, func(c *net.UnixConn, _ hello) { _, _ = c.Write([]byte{ready}) })
	before := held(t)
	for step, deaths := range []uint64{0, 0, 0, 1, 2, 3, 4, 5, 6} { // in all
		c := must.Get(net.DialUnix("unixpacket", nil, unixAddr(a.local)))(t)
		if step >= 1 {
			h := hello{device: name, memory: memorySize, nonce: nonce{byte(step)}}
			require.NoError(t, sendHello(c, &h))
		}
		if step >= 2 {
			met, fds, err := receiveHello(c, 1)
			require.NoError(t, err)
			ring := must.Get(adoptMemory(fds[0]))(t)
			if step >= 3 {
				must.Get(c.Write([]byte{ready}))(t)
			}
			p := newProducer(ring)
			if step >= 4 { // a packet is written
				require.NoError(t, p.put(0, head(0, 0), nil, nil))
			}
			if step >= 5 { // and shown
				p.publish()
				bell := must.Get(dialBell("", met.nonce))(t)
				ringBell(bell)
				unix.Close(bell)
			}
			if step >= 6 { // an arena is shown
				showArena(c, id)
			}
			if step >= 7 { // and mapped, and lent
				must.Get(c.Read(make([]byte, noteLen)))(t)
				must.Get(p.putRef(head(0, 4096), id, 0, 4096))(t)
				p.publish()
			}
			if step >= 8 { // and being read
				batch := make([]link.Packet, 4)
				n := must.Get(a.Recv(batch))(t)
				for _, got := range batch[:n] {
					if got.Pull != nil {
						require.True(t, parse(t, got).Claim())
					}
				}
			}
			require.NoError(t, unix.Munmap(ring))
			closeAll(fds)
		}
		require.NoError(t, c.Close())
		until(func() bool { return counter(a, "shm_deaths") == deaths && a.ins.Load() == 0 })
		must.Get(a.Recv(make([]link.Packet, 1)))(t) // nothing of the last is in use
		requireHeld(t, before, a)
		require.Equal(t, deaths, counter(a, "shm_deaths"), "step %d", step)
	}
	require.Zero(t, counter(a, "shm_broken"))
}

// An acceptor that dies after any step leaves nothing behind in the device that
// dials it, which goes on by UDP.
func TestAcceptorDies(t *testing.T) {
	a := listen(t)
	at := own(11)
	before := held(t)
	for step := range 4 {
		listener := must.Get(net.ListenUnix("unixpacket", unixAddr(at)))(t)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			defer listener.Close() // last, for which the next dial waits
			c, err := listener.AcceptUnix()
			if err != nil {
				return
			}
			defer c.Close()
			if step >= 1 {
				_, _, err = receiveHello(c, 0)
			}
			if step < 2 || err != nil {
				return
			}
			mem, fd, err := newMemory()
			if err != nil {
				return
			}
			defer unix.Close(fd)
			defer func() { _ = unix.Munmap(mem) }()
			h := hello{device: at, memory: memorySize, nonce: a.nonce} // some bell
			if sendHello(c, &h, fd) == nil && step >= 3 {
				_, _ = c.Read(make([]byte, 1)) // ready
			}
		}()
		met := a.Meet(at)
		if step < 2 {
			require.Zero(t, met, "step %d", step)
			require.Zero(t, counter(a, "shm_fallback"), "step %d: it has ended", step)
		} else if step == 3 {
			require.NotZero(t, met)
		}
		<-gone
		requireHeld(t, before, a)
		a.mu.Lock()
		clear(a.absent)
		a.mu.Unlock()
	}
	require.Zero(t, counter(a, "shm_broken"))
}
