package link

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// recorder is a Link that notes what is sent through it.
type recorder struct {
	Link
	mu      sync.Mutex
	got     []got
	sends   int
	maxLen  int
	closed  bool
	failure error
	start   time.Time
}

type got struct {
	seq  uint32
	tail uint32 // from the payload: must be seq as well
	flip uint32
	at   time.Duration
}

func newRecorder() *recorder { return &recorder{start: time.Now()} }

func (r *recorder) Send(batch []Packet) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return net.ErrClosed
	}
	if r.failure != nil {
		return r.failure
	}
	r.sends++
	if r.maxLen > 0 && len(batch) > r.maxLen {
		return errors.New("batch too large")
	}
	for _, p := range batch {
		if p.Frame != nil {
			return errors.New("a packet that may leave twice is finished where it lies")
		}
		g := got{seq: binary.BigEndian.Uint32(p.Head), flip: p.Flip, at: time.Since(r.start)}
		if g.tail = g.seq; len(p.Payload) > 0 {
			g.tail = binary.BigEndian.Uint32(p.Payload)
		}
		r.got = append(r.got, g)
	}
	return nil
}

func (r *recorder) Caps() Caps { return Caps{MTU: 1500, BatchSize: 16} }
func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return nil
}
func (r *recorder) Counters(dst []Counter) []Counter {
	return append(dst, Counter{"inner", uint64(len(r.sent()))})
}

func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

// sent returns the packets sent so far.
func (r *recorder) sent() []got {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *recorder) seqs() []uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s []uint32
	for _, g := range r.got {
		s = append(s, g.seq)
	}
	return s
}

// sendNumbered sends packets from … to-1 in batches, reusing the batch's memory
// as an engine does.
func sendNumbered(t *testing.T, l Link, from, to, batch int) {
	t.Helper()
	buf := make([]byte, 12*batch)
	pkts := make([]Packet, 0, batch)
	for i := from; i < to; {
		pkts = pkts[:0]
		for ; i < to && len(pkts) < batch; i++ {
			b := buf[12*len(pkts):][:12]
			binary.BigEndian.PutUint32(b, uint32(i))
			binary.BigEndian.PutUint32(b[4:], uint32(i))
			pkts = append(pkts, Packet{Peer: netip.MustParseAddrPort("10.0.0.1:4791"), Head: b[:4:4], Payload: b[4:8:8], Frame: b})
		}
		require.NoError(t, l.Send(pkts))
		for j := range buf {
			buf[j] = 0xa5
		}
	}
}

func count(l Link, name string) uint64 {
	for _, c := range l.Counters(nil) {
		if c.Name == name {
			return c.Value
		}
	}
	panic("no counter " + name)
}

func TestNoFaultsIsTheLinkItself(t *testing.T) {
	r := newRecorder()
	require.Same(t, r, WithFaults(r, Faults{Seed: 7}))
	require.False(t, Faults{Seed: 7}.Any())
	require.True(t, Faults{Delay: 1}.Any())
}

// The first decisions of a seed, so that a changed generator, which would make
// recorded seeds mean something else, is noticed.
func TestDecisionsDependOnNumberAndSeedOnly(t *testing.T) {
	f := Faults{Loss: 0.2, Reorder: 0.2, Dup: 0.2, Corrupt: 0.2, Seed: 7}
	var a, b []decision
	d := newDecider(f)
	for range 1000 {
		a = append(a, d.decide())
	}
	e := newDecider(f)
	for range 1000 {
		b = append(b, e.decide())
	}
	require.Equal(t, a, b)

	f.Seed = 8
	g := newDecider(f)
	same := 0
	for i := range 1000 {
		if g.decide() == a[i] {
			same++
		}
	}
	require.Less(t, same, 600, "another seed must decide otherwise")

	// One kind's rate does not move another kind's decisions.
	f.Seed, f.Dup, f.Corrupt, f.Reorder = 7, 0, 0, 0
	h := newDecider(f)
	for i := range 1000 {
		require.Equal(t, a[i].lose, h.decide().lose, "packet %d", i)
	}
}

func TestRates(t *testing.T) {
	const n = 100_000
	for _, rate := range []float64{0, 0.001, 0.01, 0.05, 0.5, 1} {
		for seed := range uint64(3) {
			d := newDecider(Faults{Loss: rate, Reorder: rate, Dup: rate, Corrupt: rate, Seed: seed})
			var c [4]float64
			behind := [maxBehind + 1]int{}
			for range n {
				x := d.decide()
				for i, hit := range []bool{x.lose, x.behind > 0, x.dup, x.corrupt} {
					if hit {
						c[i]++
					}
				}
				behind[x.behind]++
				require.Equal(t, x.corrupt, x.flip != 0)
			}
			// Five standard deviations.
			slack := 5 * math.Sqrt(n*rate*(1-rate))
			for i := range c {
				require.InDelta(t, n*rate, c[i], slack, "kind %d rate %v seed %d", i, rate, seed)
			}
			if rate == 1 {
				for k := 1; k <= maxBehind; k++ {
					require.InDelta(t, n/maxBehind, behind[k], 5*math.Sqrt(n/maxBehind), "distance %d", k)
				}
			}
		}
	}
}

func TestLoss(t *testing.T) {
	r := newRecorder()
	l := WithFaults(r, Faults{Loss: 0.25, Seed: 1})
	sendNumbered(t, l, 0, 4000, 16)
	require.Equal(t, uint64(4000-len(r.sent())), count(l, "fault_loss"))
	require.InDelta(t, 1000, count(l, "fault_loss"), 150)
	last := -1
	for _, g := range r.sent() {
		require.Greater(t, int(g.seq), last, "loss alone keeps the order")
		last = int(g.seq)
	}
	require.Equal(t, uint64(len(r.sent())), count(l, "inner"), "the inner link's counters are there too")
}

func TestDupAndCorrupt(t *testing.T) {
	r := newRecorder()
	l := WithFaults(r, Faults{Dup: 0.3, Corrupt: 0.3, Seed: 2})
	sendNumbered(t, l, 0, 2000, 7)
	seen, flipped := map[uint32]int{}, 0
	for _, g := range r.sent() {
		if g.flip != 0 {
			flipped++
			require.Zero(t, seen[g.seq], "a duplicate is whole")
		}
		seen[g.seq]++
	}
	require.Len(t, seen, 2000)
	twice := 0
	for _, n := range seen {
		require.LessOrEqual(t, n, 2)
		twice += n - 1
	}
	require.Equal(t, uint64(twice), count(l, "fault_dup"))
	require.Equal(t, uint64(flipped), count(l, "fault_corrupt"))
	require.NotZero(t, twice)
	require.NotZero(t, flipped)
}

func TestReorderHoldsBackByAtMostEight(t *testing.T) {
	r := newRecorder()
	l := WithFaults(r, Faults{Reorder: 0.2, Seed: 3})
	sendNumbered(t, l, 0, 5000, 16)
	require.InDelta(t, 1000, count(l, "fault_reorder"), 150)
	require.NoError(t, l.Close())

	// Packets still held are lost with the link; all before them are whole.
	seen, out := map[uint32]bool{}, 0
	for _, g := range r.sent() {
		require.Equal(t, g.seq, g.tail, "a held packet keeps its bytes")
		require.False(t, seen[g.seq])
		seen[g.seq] = true
	}
	for i, g := range r.sent() {
		late := i - int(g.seq)
		require.LessOrEqual(t, late, 4*maxBehind)
		if late > 0 {
			out++
		}
	}
	require.NotZero(t, out)
	for i := range 5000 - 2*maxBehind {
		require.True(t, seen[uint32(i)], "packet %d", i)
	}
}

func TestHeldPacketGoesWhenNothingFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		l := WithFaults(r, Faults{Reorder: 1})
		sendNumbered(t, l, 0, 3, 3)
		require.Empty(t, r.seqs())
		time.Sleep(holdTime)
		synctest.Wait()
		require.Equal(t, []uint32{0, 1, 2}, r.seqs())
		require.Equal(t, holdTime, r.sent()[0].at)
		require.NoError(t, l.Close())
	})
}

func TestDelayKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		l := WithFaults(r, Faults{Delay: 2 * time.Millisecond})
		r.maxLen = r.Caps().BatchSize
		sendNumbered(t, l, 0, 40, 40)
		time.Sleep(time.Millisecond)
		sendNumbered(t, l, 40, 50, 4)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Len(t, r.sent(), 40)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Len(t, r.sent(), 50)
		for i, g := range r.sent() {
			require.Equal(t, got{seq: uint32(i), tail: uint32(i), at: time.Duration(2+i/40) * time.Millisecond}, g)
		}
		require.Equal(t, uint64(50), count(l, "fault_delay"))
		require.NoError(t, l.Close())
	})
}

func TestAllFaultsDeterministic(t *testing.T) {
	run := func(seed uint64) (seqs []uint32) {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			l := WithFaults(r, Faults{Loss: 0.05, Reorder: 0.1, Dup: 0.01, Corrupt: 0.01, Delay: time.Millisecond, Seed: seed})
			sendNumbered(t, l, 0, 3000, 16)
			time.Sleep(time.Second)
			synctest.Wait()
			seqs = r.seqs()
			require.Equal(t, 3000-int(count(l, "fault_loss"))+int(count(l, "fault_dup")), len(seqs))
			require.NoError(t, l.Close())
		})
		return seqs
	}
	require.Equal(t, run(7), run(7))
	require.NotEqual(t, run(7), run(8))
}

func TestDelayQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		l := WithFaults(r, Faults{Delay: time.Hour})
		sendNumbered(t, l, 0, queueLimit+100, 64)
		require.Equal(t, uint64(100), count(l, "fault_overflow"))
		require.NoError(t, l.Close())
	})
}

func TestFaultyClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		l := WithFaults(r, Faults{Delay: time.Millisecond, Reorder: 0.5})
		sendNumbered(t, l, 0, 10, 10)
		require.NoError(t, l.Close())
		require.NoError(t, l.Close())
		require.ErrorIs(t, l.Send(nil), net.ErrClosed)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, r.sent())
		// synctest.Test fails if a goroutine were left.
	})
}

func TestFaultySendErrorOfTheTimerIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		l := WithFaults(r, Faults{Delay: time.Millisecond})
		sendNumbered(t, l, 0, 1, 1)
		down := errors.New("link down")
		r.fail(down)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		require.ErrorIs(t, l.Send([]Packet{{Head: make([]byte, 12)}}), down)
		require.NoError(t, l.Close())
	})
}

// Packets that neither wait nor are held back are passed on as they lie.
func TestSendDoesNotAllocate(t *testing.T) {
	l := WithFaults(&discard{}, Faults{Loss: 0.1, Dup: 0.1, Corrupt: 0.1})
	defer l.Close()
	pkts := make([]Packet, 16)
	for i := range pkts {
		pkts[i].Head = make([]byte, 64)
	}
	for range 100 {
		require.NoError(t, l.Send(pkts))
	}
	require.Less(t, testing.AllocsPerRun(200, func() { _ = l.Send(pkts) }), 1.0)
}

type discard struct{ recorder }

func (*discard) Send([]Packet) error { return nil }
