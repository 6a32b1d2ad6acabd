package shm

import (
	"bytes"
	"encoding/binary"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/arena"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

// lender is a device with memory to lend to another one, which has mapped it.
type lender struct {
	*Link
	to           *Link
	mem          []byte
	region, pair *wire.Lease
}

func lend(t *testing.T) (a *lender, b *Link) {
	t.Helper()
	a, b = &lender{Link: listen(t)}, listen(t)
	a.to = b
	require.NotZero(t, a.Meet(b.local))
	a.mem = must.Get(arena.Alloc(256 << 10))(t)
	t.Cleanup(func() {
		if a.mem != nil {
			arena.Free(a.mem)
		}
	})
	for i := range a.mem {
		a.mem[i] = byte(i / 4096)
	}
	a.region, a.pair = a.Lease(a.mem), new(wire.Lease)
	require.NotNil(t, a.region)
	require.Zero(t, a.Lease(make([]byte, 4096)).Arena)
	// The first packet asks for the arena to be mapped, and is copied.
	require.NoError(t, a.Send([]link.Packet{a.packet(0, 0)}))
	require.Nil(t, recv(t, b).Pull)
	until(func() bool {
		a.tx.Lock()
		defer a.tx.Unlock()
		return a.tx.rings[b.local].out.arenas[a.region.Arena]
	})
	return a, b
}

// packet lends page k.
func (a *lender) packet(psn, k int) link.Packet {
	p := packet(a.to, psn, a.mem[k*4096:][:4096])
	p.Loan = wire.Loan{Region: a.region, Pair: a.pair, At: uint64(k) * 4096}
	return p
}

// recv receives one packet.
func recv(t *testing.T, l *Link) link.Packet {
	t.Helper()
	batch := make([]link.Packet, 1)
	n := must.Get(link.Receive(l, batch))(t)
	require.Equal(t, 1, n)
	return batch[0]
}

func parse(t *testing.T, p link.Packet) *wire.Packet {
	t.Helper()
	w := new(wire.Packet)
	require.NoError(t, w.ParseApart(p.Head, p.Payload))
	w.Pull = p.Pull
	return w
}

func page(k int) []byte { return bytes.Repeat([]byte{byte(k)}, 4096) }

// A payload that is lent is read where it lies, once.
func TestLentPayload(t *testing.T) {
	a, b := lend(t)
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 3), a.packet(2, 63)}))
	for _, k := range []int{3, 63} {
		w := parse(t, recv(t, b))
		require.True(t, w.Claim())
		require.Equal(t, page(k), w.Payload)
		a.mem[k*4096] = 77
		require.EqualValues(t, 77, w.Payload[0], "it is the sender's memory")
		require.True(t, w.Settle())
	}
	require.EqualValues(t, 2*4096, counter(a, "shm_ref_bytes"))
	require.EqualValues(t, 2*4096, counter(b, "shm_pulled_bytes"))
	require.EqualValues(t, 3*4096, counter(b, "shm_rcvd_bytes"))
	far := a.packet(3, 1)
	far.Far = true
	require.NoError(t, a.Send([]link.Packet{far}))
	whole := recv(t, b)
	require.Nil(t, whole.Pull, "by another way it is a copy")
	require.Equal(t, page(1), whole.Head[12:12+4096])
}

// Memory of no arena is copied once, from where it lies. Memory that has gone
// is not sent, by either way.
func TestLentToTheRing(t *testing.T) {
	a, b := lend(t)
	arenas := a.mem
	defer func() { a.mem = arenas }()
	var err error
	a.mem, err = unix.Mmap(-1, 0, 64<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func(m []byte) { require.NoError(t, unix.Munmap(m)) }(a.mem)
	copy(a.mem[4096:], page(7))
	a.region = a.Lease(a.mem)
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 1)}))
	w := recv(t, b)
	require.Nil(t, w.Pull)
	require.Equal(t, page(7), w.Payload)
	require.Zero(t, counter(a, "shm_ref_bytes"))
	require.NoError(t, unix.Mprotect(a.mem, unix.PROT_NONE))
	for i, change := range []func(*link.Packet){
		func(*link.Packet) {},
		func(p *link.Packet) { p.Flip = 9 },
		func(p *link.Packet) { p.Far = true },
	} {
		p := a.packet(2+i, 1)
		change(&p)
		require.NoError(t, a.Send([]link.Packet{p}))
		require.EqualValues(t, i+1, counter(a, "shm_recalled"))
	}
	require.NoError(t, a.Send([]link.Packet{packet(b, 9, []byte("next"))}))
	require.Contains(t, string(recv(t, b).Head), "next")
}

// A payload that is taken back is lost: before it is sent, in the ring, and
// received.
func TestRecall(t *testing.T) {
	a, b := lend(t)
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 1), a.packet(2, 2), packet(b, 3, []byte("own"))}))
	w := parse(t, recv(t, b))
	a.Recall(a.pair)
	require.False(t, w.Claim())
	require.Nil(t, w.Payload)
	require.Equal(t, "own", string(parse(t, link.Packet{Head: recv(t, b).Head[:12], Payload: []byte("own")}).Payload))
	require.EqualValues(t, 2, counter(a, "shm_recalled"))
	require.NoError(t, a.Send([]link.Packet{a.packet(4, 1)}))
	require.EqualValues(t, 3, counter(a, "shm_recalled"))
	a.pair = new(wire.Lease)
	require.NoError(t, a.Send([]link.Packet{a.packet(5, 1)}))
	w = parse(t, recv(t, b))
	a.Recall(a.region)
	require.False(t, w.Claim())
	require.Zero(t, counter(a, "shm_deaths"))
}

// A receiver that reads is waited for.
func TestRecallWaits(t *testing.T) {
	a, b := lend(t)
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 1)}))
	w := parse(t, recv(t, b))
	require.True(t, w.Claim())
	var settled atomic.Bool
	recalled := make(chan bool)
	go func() {
		a.Recall(a.pair)
		recalled <- settled.Load()
	}()
	until(func() bool { // the recall holds the lock
		if a.tx.TryLock() {
			a.tx.Unlock()
			return false
		}
		return true
	})
	settled.Store(true)
	require.True(t, w.Settle())
	require.True(t, <-recalled)
	require.Zero(t, counter(a, "shm_deaths")+counter(a, "shm_recalled"))
}

// A receiver that does not end reading counts as gone, and its packet is void.
func TestRecallGivesUp(t *testing.T) {
	a, b := lend(t)
	told := make(chan uint64, 1)
	a.SetGone(func(device uint64) { told <- device })
	device := a.Meet(b.local)
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 1)}))
	w := parse(t, recv(t, b))
	require.True(t, w.Claim())
	a.Recall(a.pair)
	require.False(t, w.Settle())
	require.Equal(t, device, <-told)
	require.EqualValues(t, 1, counter(a, "shm_deaths"))
	until(func() bool { return b.ins.Load() == 0 })
	require.NoError(t, a.Send([]link.Packet{a.packet(2, 1)}), "there is no ring: it is lost")
}

// Taps on either side see whole packets, with right ICRCs.
func TestLentPayloadsBesideTaps(t *testing.T) {
	for name, tapped := range map[string]func(a, b *Link) *Link{
		"sender":   func(a, b *Link) *Link { return a },
		"receiver": func(a, b *Link) *Link { return b },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := lend(t)
			var seen tap
			tapped(a.Link, b).SetTap(&seen)
			require.NoError(t, a.Send([]link.Packet{a.packet(0, 5)}))
			require.Equal(t, page(5), receive(t, b, 1)[0])
			require.Len(t, seen.datagrams, 1)
			require.Equal(t, page(5), seen.datagrams[0][len(head(0, 0)):][:4096])
		})
	}
	a, b := lend(t)
	bad := a.packet(1, 1)
	bad.Flip = 100
	require.NoError(t, a.Send([]link.Packet{bad, a.packet(2, 2)}))
	require.Equal(t, page(2), parse(t, recv(t, b)).Payload)
	require.EqualValues(t, 1, counter(b, "drop_icrc"))
}

func arenaMaps(t *testing.T) int {
	maps := must.Get(os.ReadFile("/proc/self/maps"))(t)
	return strings.Count(string(maps), "/memfd:rdmashim-arena")
}

// A view of an arena goes with the arena, and with the sender.
func TestViewsGo(t *testing.T) {
	before := arenaMaps(t)
	a, b := lend(t)
	require.Equal(t, before+2, arenaMaps(t))
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 1)}))
	w := parse(t, recv(t, b))
	a.Recall(a.region)
	arena.Free(a.mem)
	a.mem = nil
	until(func() bool {
		b.rx.Lock()
		defer b.rx.Unlock()
		return len(b.rx.deferred) > 0
	})
	require.EqualValues(t, 1, w.Payload[0], "what was received last may be read")
	must.Get(b.Recv(make([]link.Packet, 1)))(t)
	require.Equal(t, before, arenaMaps(t))

	a, b = lend(t)
	require.Equal(t, before+2, arenaMaps(t))
	require.NoError(t, a.Close())
	until(func() bool { return b.ins.Load() == 0 })
	must.Get(b.Recv(make([]link.Packet, 1)))(t)
	require.Equal(t, before+1, arenaMaps(t))
}

// A hostile sender's record that lends ends the ring, and no byte outside of
// the arenas that it has shown is read.
func TestHostileLoans(t *testing.T) {
	ref := func(head []byte, beside, at uint64, n int) func(*producer, uint64) error {
		return func(p *producer, arena uint64) error {
			_, err := p.putRef(head, arena+beside, at, n)
			return err
		}
	}
	datagram := wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: 1}
	for name, write := range map[string]func(p *producer, arena uint64) error{
		"another arena":  ref(head(0, 16), 1, 0, 16),
		"behind the end": ref(head(0, 16), 0, 16<<20-15, 16),
		"far behind":     ref(head(0, 16), 0, ^uint64(0)-7, 16),
		"nothing":        ref(head(0, 0), 0, 0, 0),
		"too much":       ref(head(0, 0), 0, 0, wire.MaxPrivateMTU+4),
		"a datagram":     ref(datagram.Append(nil), 0, 0, 256),
		"both flags": func(p *producer, arena uint64) error {
			return p.put(sealed|referenced, head(0, 0), make([]byte, 64), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := lend(t)
			a.tx.Lock()
			o := a.tx.rings[b.local].out
			require.NoError(t, write(&o.producer, a.region.Arena))
			o.publish()
			a.tx.Unlock()
			batch := make([]link.Packet, 1)
			until(func() bool {
				n := must.Get(b.Recv(batch))(t)
				require.Zero(t, n)
				return b.ins.Load() == 0
			})
			require.EqualValues(t, 1, counter(b, "shm_broken"))
		})
	}
}

// An arena that is not sealed, or not as long as it says, or one too many, ends
// the ring, and is not mapped.
func TestHostileArenas(t *testing.T) {
	memfd := func(t *testing.T, n int64, seals int) int {
		fd := must.Get(unix.MemfdCreate("hostile", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)
		t.Cleanup(func() { unix.Close(fd) })
		require.NoError(t, unix.Ftruncate(fd, n))
		must.Get(unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals))(t)
		return fd
	}
	note := func(id, n uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{mapArena}, id), n)
	}
	const missing = arena.Seals &^ unix.F_SEAL_SHRINK
	for name, send := range map[string]func(t *testing.T, say func(b []byte, fds ...int)){
		"not sealed":    func(t *testing.T, say func([]byte, ...int)) { say(note(9, 4096), memfd(t, 4096, missing)) },
		"shorter":       func(t *testing.T, say func([]byte, ...int)) { say(note(9, 8192), memfd(t, 4096, arena.Seals)) },
		"no memory":     func(t *testing.T, say func([]byte, ...int)) { say(note(9, 0), memfd(t, 0, arena.Seals)) },
		"no descriptor": func(t *testing.T, say func([]byte, ...int)) { say(note(9, 4096)) },
		"two":           func(t *testing.T, say func([]byte, ...int)) { say(note(9, 4096), 0, 0) },
		"a pipe":        func(t *testing.T, say func([]byte, ...int)) { say(note(9, 4096), 0) },
		"twice": func(t *testing.T, say func([]byte, ...int)) {
			for range 2 {
				say(note(9, 4096), memfd(t, 4096, arena.Seals))
			}
		},
		"257": func(t *testing.T, say func([]byte, ...int)) {
			fd := memfd(t, 4096, arena.Seals)
			for i := range uint64(maxArenas + 1) {
				say(note(1000+i, 4096), fd)
			}
		},
		"nonsense": func(t *testing.T, say func([]byte, ...int)) { say([]byte("hello")) },
	} {
		t.Run(name, func(t *testing.T) {
			before := held(t)
			a, b := open(t), open(t)
			defer b.Close()
			defer a.Close()
			require.NotZero(t, a.Meet(b.local))
			until(func() bool { return b.ins.Load() == 1 })
			a.mu.Lock()
			for c := range a.place.conns {
				send(t, func(msg []byte, fds ...int) {
					_, _, err := c.WriteMsgUnix(msg, unix.UnixRights(fds...), nil)
					require.NoError(t, err)
				})
			}
			a.mu.Unlock()
			until(func() bool { return b.ins.Load() == 0 })
			require.EqualValues(t, 1, counter(b, "shm_broken"))
			require.NoError(t, a.Close())
			require.NoError(t, b.Close())
			now := held(t)
			require.Equal(t, before.maps, now.maps)
		})
	}
}

// A ring that is full of loans forgets those that were given back.
func TestManyLoans(t *testing.T) {
	a, b := lend(t)
	for i := range 5000 {
		require.NoError(t, a.Send([]link.Packet{a.packet(i, i%64)}))
		w := parse(t, recv(t, b))
		require.True(t, w.Claim() && w.Settle())
	}
	must.Get(b.Recv(make([]link.Packet, 1)))(t)
	a.Recall(a.region)
	require.Zero(t, counter(a, "shm_recalled"))
	a.tx.Lock()
	defer a.tx.Unlock()
	require.Less(t, cap(a.tx.rings[b.local].out.loans.list), 64)
}

// A device that is closed in the middle unmaps with the Recv that tells so.
func TestCloseWhileReading(t *testing.T) {
	before := arenaMaps(t)
	a, b := lend(t)
	require.NoError(t, a.Send([]link.Packet{a.packet(1, 1)}))
	w := parse(t, recv(t, b))
	require.True(t, w.Claim())
	require.NoError(t, b.Close())
	require.Equal(t, page(1), w.Payload)
	w.Settle() // false if a has seen the hang-up
	_, err := b.Recv(make([]link.Packet, 1))
	require.Error(t, err)
	require.Equal(t, before+1, arenaMaps(t))
	require.Eventually(t, func() bool { return a.outsLeft() == 0 }, long, time.Millisecond)
}
