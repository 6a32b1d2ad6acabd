package shm

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/udp"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// long bounds what must happen, on the slowest of machines.
const long = time.Minute

func listen(t *testing.T) *Link {
	t.Helper()
	return listenAt(t, netip.MustParseAddrPort("127.0.0.1:0"))
}

func listenAt(t *testing.T, at netip.AddrPort) *Link {
	t.Helper()
	l := openAt(t, at)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// openAt is listenAt for a device that the test closes.
func openAt(t *testing.T, at netip.AddrPort) *Link {
	t.Helper()
	inner, err := udp.Listen(at, udp.Options{})
	if err != nil && at.Addr().Is6() {
		t.Skip("this machine has no ::1; enable IPv6: sysctl net.ipv6.conf.all.disable_ipv6=0: ", err)
	}
	require.NoError(t, err)
	return must.Get(Wrap(inner, Options{Patience: long}))(t)
}

// met are two devices, the first of which has met the second.
func met(t *testing.T) (a, b *Link) {
	t.Helper()
	a, b = listen(t), listen(t)
	require.NotZero(t, a.Meet(b.local))
	return a, b
}

// outsLeft and ringsLeft count the rings to be written, and all.
func (l *Link) outsLeft() int {
	l.tx.Lock()
	defer l.tx.Unlock()
	return len(l.tx.rings)
}

func (l *Link) ringsLeft() int { return l.outsLeft() + int(l.ins.Load()) }

// conns counts the connections to other processes.
func (l *Link) conns() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.place.conns)
}

// until waits until so reports true, or for long.
func until(so func() bool) {
	for end := time.Now().Add(long); !so() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func counter(l link.Link, name string) (sum uint64) {
	for _, c := range l.Counters(nil) {
		if c.Name == name {
			sum += c.Value
		}
	}
	return sum
}

func head(psn int, n int) []byte {
	h := wire.BTH{Opcode: wire.RCSendOnly, Pad: wire.PadLen(n), PKey: wire.DefaultPKey, DestQPN: 7, PSN: wire.PSN(psn)}
	return h.Append(nil)
}

func packet(to *Link, psn int, payload []byte) link.Packet {
	return link.Packet{Peer: to.local, Head: head(psn, len(payload)), Payload: payload}
}

// receive waits for n packets and returns their payloads in order.
func receive(t *testing.T, l *Link, n int) (payloads [][]byte) {
	t.Helper()
	batch := make([]link.Packet, 16)
	for len(payloads) < n {
		k := must.Get(link.Receive(l, batch))(t)
		for _, p := range batch[:k] {
			var w wire.Packet
			require.NoError(t, w.Parse(p.Head))
			require.Equal(t, len(payloads), int(w.PSN))
			payloads = append(payloads, bytes.Clone(w.Payload))
		}
	}
	return payloads
}

func TestPacketsTakeTheRing(t *testing.T) {
	a, b := met(t)
	require.Equal(t, a.Meet(b.local), a.Meet(b.local), "met once")
	const n = 600
	go func() {
		for i := range n {
			_ = a.Send([]link.Packet{packet(b, i, bytes.Repeat([]byte{byte(i)}, i%257))})
		}
	}()
	payload := 0
	for i, p := range receive(t, b, n) {
		payload += i % 257
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, i%257), append([]byte{}, p...))
	}
	require.EqualValues(t, n, counter(a, "shm_sent_pkts"))
	require.EqualValues(t, n, counter(b, "shm_rcvd_pkts"))
	require.EqualValues(t, payload, counter(a, "shm_sent_bytes"))
	require.EqualValues(t, payload, counter(b, "shm_rcvd_bytes"))
	require.Zero(t, counter(b, "shm_sent_pkts"), "each dials for its own direction")
	require.NoError(t, b.Send([]link.Packet{packet(a, 0, []byte("udp"))}))
	require.Equal(t, "udp", string(receive(t, a, 1)[0]))
	require.NotZero(t, b.Meet(a.local))
	require.NoError(t, b.Send([]link.Packet{packet(a, 0, []byte("ring"))}))
	require.Equal(t, "ring", string(receive(t, a, 1)[0]))
	far := packet(a, 0, []byte("far"))
	far.Far = true
	require.True(t, b.Reaches(b.Meet(a.local)))
	require.False(t, b.Reaches(99))
	require.NoError(t, b.Send([]link.Packet{far}))
	require.Equal(t, "far", string(receive(t, a, 1)[0]))
	require.EqualValues(t, 1, counter(b, "shm_sent_pkts"))
}

// TestProgress: what a device has not taken from its ring is seen, however it
// lies about that.
func TestProgress(t *testing.T) {
	a, b := listen(t), listen(t)
	device := a.Meet(b.local)
	progress := func() [2]uint64 {
		sent, taken := a.Progress(device)
		return [2]uint64{sent, taken}
	}
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("one"))}))
	first := progress()
	require.NotZero(t, first[0])
	require.Zero(t, first[1])
	require.Equal(t, "one", string(receive(t, b, 1)[0]))
	must.Get(b.Recv(make([]link.Packet, 1)))(t) // it gives the room back
	require.Equal(t, [2]uint64{first[0], first[0]}, progress())
	require.NoError(t, a.Send([]link.Packet{packet(b, 1, []byte("two"))}))
	require.Equal(t, [2]uint64{2 * first[0], first[0]}, progress())
	a.tx.Lock()
	word(a.tx.rings[b.local].out.mem, headAt).Store(1 << 40)
	a.tx.Unlock()
	require.Zero(t, progress())
	sent, taken := a.Progress(device + 1)
	require.Zero(t, sent+taken)
}

func TestNobodyIsMet(t *testing.T) {
	a := listen(t)
	require.Zero(t, a.Meet(netip.MustParseAddrPort("127.0.0.1:1")))
	require.Zero(t, counter(a, "shm_fallback"), "a device elsewhere is no trouble")
	require.NotZero(t, a.Meet(a.local), "itself")
	require.NoError(t, a.Send([]link.Packet{packet(a, 0, []byte("me"))}))
	require.Equal(t, "me", string(receive(t, a, 1)[0]))
}

// TestStayAwake: a caller that receives by itself spares the bell; behind it a
// goroutine that waits is woken for what is left, and for what comes.
func TestStayAwake(t *testing.T) {
	a, b := met(t)
	until(func() bool { return b.ins.Load() > 0 })
	waits := func() chan error {
		for {
			woken := make(chan error, 1)
			go func() { woken <- b.Wait() }()
			until(func() bool {
				b.rx.Lock()
				defer b.rx.Unlock()
				return b.rx.sleepers == 1 || len(woken) == 1
			})
			if len(woken) == 0 { // else by the coming of the ring
				return woken
			}
			require.NoError(t, <-woken)
		}
	}
	takes := func(want int) {
		n := must.Get(b.Recv(make([]link.Packet, 4)))(t)
		require.Equal(t, want, n)
	}
	for _, received := range []bool{false, true} {
		woken := waits()
		b.StayAwake()
		require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("one"))}))
		require.False(t, b.place.drain(1))
		if received {
			takes(1)
			takes(0)
		}
		b.MaySleep()
		if received {
			require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("two"))}))
		}
		require.NoError(t, <-woken)
		takes(1)
	}
}

// TestStayAwakeFull: a device that fills the ring to itself meanwhile wakes the
// goroutine that waits: the caller sends, and cannot receive.
func TestStayAwakeFull(t *testing.T) {
	a := listen(t)
	require.NotZero(t, a.Meet(a.local))
	until(func() bool { return a.ins.Load() > 0 })
	a.StayAwake()
	defer a.MaySleep()
	for counter(a, "drop_shm_full") == 0 {
		require.NoError(t, a.Send([]link.Packet{packet(a, 0, make([]byte, 4096))}))
	}
	require.True(t, a.place.drain(1))
}

// A corrupt packet is dropped by the receiver's ICRC, as on a wire.
func TestFlip(t *testing.T) {
	a, b := met(t)
	bad := packet(b, 9, []byte("bad"))
	bad.Flip = 100
	require.NoError(t, a.Send([]link.Packet{bad, packet(b, 0, []byte("good"))}))
	require.Equal(t, "good", string(bytes.TrimRight(receive(t, b, 1)[0], "\x00")))
	require.EqualValues(t, 1, counter(b, "drop_icrc"))
}

type tap struct{ datagrams [][]byte }

func (p *tap) Datagram(_ link.Way, src, dst netip.AddrPort, id uint16, parts0, parts1, parts2 []byte) {
	b := bytes.Join([][]byte{parts0, parts1, parts2}, nil)
	if f, err := wire.NewFlow(src, dst, true); err == nil && f.Check(b, id) {
		p.datagrams = append(p.datagrams, b)
	}
}

// Taps on either side see the same datagram, with a right ICRC.
func TestTap(t *testing.T) {
	a, b := met(t)
	require.NotZero(t, b.Meet(a.local))
	var seen tap
	b.SetTap(&seen)
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("hello"))}))
	receive(t, b, 1)
	require.NoError(t, b.Send([]link.Packet{packet(a, 0, []byte("hello"))}))
	receive(t, a, 1)
	require.Len(t, seen.datagrams, 2)
	require.Equal(t, len(head(0, 5))+8+wire.ICRCLen, len(seen.datagrams[0]))
	require.Equal(t, seen.datagrams[0][:20], seen.datagrams[1][:20])
}

// The packets of a device that hangs up are there before its death is told, and
// a device that comes back is another one.
func TestDeath(t *testing.T) {
	a := listen(t)
	at := netip.MustParseAddrPort("127.0.0.9:0") // one that is free, and then the same again
	for range 20 {
		b := openAt(t, at)
		at = b.local
		id := a.Meet(b.local)
		require.NotZero(t, id)
		require.NotZero(t, b.Meet(a.local))
		told := make(chan uint64, 1)
		a.SetGone(func(device uint64) {
			receive(t, a, 3)
			told <- device
		})
		until(func() bool { return a.ins.Load() == 1 }) // a has read that b is ready
		for i := range 3 {
			require.NoError(t, b.Send([]link.Packet{packet(a, i, []byte("last"))}))
		}
		require.NoError(t, b.Close())
		select {
		case got := <-told:
			require.Equal(t, id, got)
		case <-time.After(long):
			t.Fatal("no death")
		}
		// The rings go behind that.
		until(func() bool { return a.ringsLeft() == 0 })
		require.Zero(t, a.ringsLeft())
	}
	require.EqualValues(t, 20, counter(a, "shm_deaths"))
}

// A peer that breaks the rules of its ring loses it, and both go on by UDP.
func TestBrokenRing(t *testing.T) {
	a, b := met(t)
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("good"))}))
	receive(t, b, 1)
	a.tx.Lock()
	for _, d := range a.tx.rings {
		word(d.out.mem, tailAt).Store(1 << 40)
		d.out.wake()
	}
	a.tx.Unlock()
	batch := make([]link.Packet, 1)
	until(func() bool {
		must.Get(b.Recv(batch))(t)
		return b.ins.Load() == 0
	})
	require.EqualValues(t, 1, counter(b, "shm_broken"))
	until(func() bool { return a.outsLeft() == 0 })
	require.Zero(t, a.Meet(b.local), "it is left alone")
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("udp!"))}))
	require.Equal(t, "udp!", string(receive(t, b, 1)[0]))
	require.Zero(t, counter(a, "shm_deaths")+counter(b, "shm_deaths"))
}

// A consumer that stands still costs one wait, then drops.
func TestFullRingDrops(t *testing.T) {
	a, b := met(t)
	batch := make([]link.Packet, 0, 300)
	for i := range 300 {
		batch = append(batch, packet(b, i, make([]byte, 4096)))
	}
	require.NoError(t, a.Send(batch))
	require.NotZero(t, counter(a, "drop_shm_full"))
	require.EqualValues(t, 300, counter(a, "drop_shm_full")+counter(a, "shm_sent_pkts"))
	receive(t, b, int(counter(a, "shm_sent_pkts")))
}

// A hostile process's answers are refused, and nothing of them is kept.
func TestForeignMemory(t *testing.T) {
	must.Fail(adoptMemory(0))(t, unix.EPROTO)
	fd := must.Get(unix.MemfdCreate("short", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, memorySize))
	must.Fail(adoptMemory(fd))(t, unix.EPROTO, "not sealed")
	mem, ours, err := newMemory()
	require.NoError(t, err)
	defer unix.Close(ours)
	require.NoError(t, unix.Munmap(mem))
	require.Error(t, unix.Ftruncate(ours, 4096), "sealed")
	mem = must.Get(adoptMemory(ours))(t)
	require.NoError(t, unix.Munmap(mem))
}

// Strangers that dial and say nonsense, or nothing, leave nothing behind.
func TestStrangers(t *testing.T) {
	a := listen(t)
	for _, text := range []string{"", "GET / HTTP/1.1", string(a.hello(memorySize).append(nil))} {
		c := must.Get(net.DialUnix("unixpacket", nil, unixAddr(a.local)))(t)
		if text != "" {
			must.Get(c.Write([]byte(text)))(t)
		}
		require.NoError(t, c.Close())
	}
	b := listen(t)
	require.NotZero(t, b.Meet(a.local))
	require.Zero(t, counter(a, "shm_deaths"))
	inner := must.Get(udp.Listen(netip.MustParseAddrPort("127.0.0.1:0"), udp.Options{}))(t)
	defer inner.Close()
	taken := must.Get(net.ListenUnix("unixpacket", unixAddr(inner.Caps().Local)))(t)
	defer taken.Close()
	_, err := Wrap(inner, Options{})
	require.True(t, errors.Is(err, unix.EADDRINUSE), "%v", err)
	// A squatter that answers nothing costs Meet its patience, once.
	b.options.Patience = 10 * time.Millisecond
	require.Zero(t, b.Meet(inner.Caps().Local))
	require.Zero(t, b.Meet(inner.Caps().Local))
	require.EqualValues(t, 1, counter(b, "shm_fallback"))
	// A device that dials is asked again.
	require.NoError(t, taken.Close())
	c := must.Get(Wrap(inner, Options{}))(t)
	defer c.Close()
	require.NotZero(t, c.Meet(b.local))
	b.options.Patience = long
	require.NotZero(t, b.Meet(c.local))
}

// A program that dozes does not take the wake-up of a goroutine that waits.
func TestDozeBesideWait(t *testing.T) {
	a, b := met(t)
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("first"))}))
	receive(t, b, 1)
	for i := range 50 {
		waited := make(chan struct{})
		go func() {
			receive(t, b, 1)
			close(waited)
		}()
		for range i % 5 {
			_ = b.Sleep(50*time.Microsecond, false)
		}
		require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("next"))}))
		select {
		case <-waited:
		case <-time.After(long):
			t.Fatal("the wake-up is lost")
		}
	}
}

// A Wait that the bell ended takes it, though a program dozes: the next one
// blocks.
func TestWaitTakesTheBell(t *testing.T) {
	a, b := met(t)
	require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("first"))}))
	receive(t, b, 1)
	dozes := func(n int) {
		b.rx.Lock()
		b.rx.sleepers += n
		b.rx.Unlock()
	}
	dozes(1)
	defer dozes(-1)
	for range 3 {
		waited := make(chan error, 1)
		wait := func() { waited <- b.Wait() }
		go wait()
		until(func() bool {
			b.rx.Lock()
			defer b.rx.Unlock()
			if len(waited) > 0 { // in vain, as a Wait may be
				require.NoError(t, <-waited)
				go wait()
			}
			return b.rx.sleepers == 2
		})
		require.NoError(t, a.Send([]link.Packet{packet(b, 0, []byte("next"))}))
		require.NoError(t, <-waited)
		require.False(t, b.place.drain(1), "no ring is left in the bell")
		receive(t, b, 1)
	}
}

// The two ends of a ring work at the same time: a batch that fills much of it
// is seen piece by piece while it is sent, and taken piece by piece.
func TestPieces(t *testing.T) {
	a, b := met(t)
	const n = 8
	payload := make([]byte, 60<<10)
	func() {
		a.tx.Lock()
		defer a.tx.Unlock()
		for i := range n {
			p := packet(b, i, payload)
			d := a.tx.find(&p)
			a.put(d, &p)
			require.Less(t, d.out.tail-d.out.published, uint64(piece))
		}
		a.tx.publish()
	}()
	batch := make([]link.Packet, n)
	for left := n; left > 0; {
		got := must.Get(link.Receive(b, batch))(t)
		require.LessOrEqual(t, got*len(payload), piece+len(payload))
		left -= got
	}
}
