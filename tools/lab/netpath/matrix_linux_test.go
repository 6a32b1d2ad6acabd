package netpath

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"

	"github.com/rdmashim/rdmashim/tools/internal/bump"
)

// condition is a row of the matrix: a path, the same in both directions.
type condition struct {
	name string
	path Path
	// hit is the count that tells that there was a fault.
	hit func(bump.Counts) uint64
	// size multiplies the messages' lengths.
	size uint64
	// trips is how many round trips a cell may take, 0: not bounded. A window
	// that grows needs some ten.
	trips int
	// timeout and retry of the queue pairs; 0: the defaults. Where one packet
	// in five is lost an attempt fails as often as in three cases, and the
	// default's eight or more attempts would not be enough for a test that
	// never fails.
	timeout time.Duration
	retry   int
}

func delivered(c bump.Counts) uint64 { return c.Delivered }
func lost(c bump.Counts) uint64      { return c.Lost }

var conditions = []condition{
	{name: "loss 1 %", path: Path{Loss: 0.01}, hit: lost, size: 4},
	{name: "loss 5 %", path: Path{Loss: 0.05}, hit: lost, size: 1},
	{name: "loss 20 %", path: Path{Loss: 0.2}, hit: lost, size: 1, timeout: time.Second, retry: 7},
	{name: "delay 1 ms", path: Path{Delay: time.Millisecond}, hit: delivered, size: 4},
	{name: "delay 20 ms", path: Path{Delay: 20 * time.Millisecond}, hit: delivered, size: 4, trips: 40},
	{name: "delay 100 ms", path: Path{Delay: 100 * time.Millisecond}, hit: delivered, size: 4, trips: 40},
	{name: "reordering 25 %", path: Path{Reorder: 0.25}, hit: func(c bump.Counts) uint64 { return c.Reordered }, size: 1},
	{name: "duplication 10 %", path: Path{Duplicate: 0.1}, hit: func(c bump.Counts) uint64 { return c.Duplicated }, size: 4},
	{name: "corruption 5 %", path: Path{Corrupt: 0.05}, hit: func(c bump.Counts) uint64 { return c.Disguised }, size: 1},
	{name: "100 Mbit/s, 64 KiB", path: Path{Rate: 100e6, Queue: 64 << 10}, hit: delivered, size: 16},
	{name: "all", path: Path{
		Loss: 0.01, Delay: 5 * time.Millisecond, Reorder: 0.02, Duplicate: 0.02, Corrupt: 0.01, Rate: 100e6, Queue: 64 << 10,
	}, hit: lost, size: 1},
}

// operations are the columns of the matrix: each moves data and compares every
// byte.
var operations = []struct {
	name string
	run  func(t *testing.T, from, to *side, size uint64)
}{
	{"WRITE", writes}, {"SEND", sends}, {"READ", reads}, {"atomics", atomics},
}

// TestMatrix moves messages of every kind over every condition, between devices
// in two network namespaces that are connected by address. All arrive intact,
// and no message takes longer than a silent peer is believed in: (retry count +
// 1) × timeout. Every other row is IPv6.
func TestMatrix(t *testing.T) {
	for i, c := range conditions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := c.path
			path.Seed = uint64(i + 1)
			n := newNet(t, Options{AB: path, BA: path})
			for _, o := range operations {
				t.Run(o.name, func(t *testing.T) {
					// Connecting has no condition: its messages are few, and it
					// gives up when it has lost them all.
					n.SetPaths(Path{Delay: path.Delay}, Path{Delay: path.Delay})
					from, to := connect(t, n, i%2 == 0, uapi.QPConfig{Timeout: c.timeout, Retry: c.retry})
					n.SetPaths(path, path)
					began := time.Now()
					o.run(t, from, to, c.size)
					if took := time.Since(began); c.trips > 0 {
						require.Less(t, took, time.Duration(c.trips)*2*path.Delay+busy)
					}
				})
			}
			ab, ba := n.Counts()
			require.Positive(t, c.hit(ab)+c.hit(ba), "the path did nothing: %+v, %+v", ab, ba)
		})
	}
}

// TestOutage: a peer that cannot be reached any more is given up in time, with
// an error, whatever was on its way.
func TestOutage(t *testing.T) {
	t.Parallel()
	n := newNet(t, Options{AB: Path{Delay: time.Millisecond}, BA: Path{Delay: time.Millisecond}})
	from, _ := connect(t, n, true, uapi.QPConfig{})
	from.must(from.device.PostWrite(from.qp, from.mr, 0, from.peer.Addr, from.peer.RKey, 1000))
	from.complete(t, 1)
	n.SetPaths(Path{Loss: 1}, Path{Loss: 1})
	began := time.Now()
	for range 4 {
		from.must(from.device.PostWrite(from.qp, from.mr, 0, from.peer.Addr, from.peer.RKey, 5000))
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wc := make([]uapi.WC, 4)
	for got := 0; got < len(wc); {
		k := must.Get(from.device.WaitCQ(ctx, from.qp, wc[got:]))(t)
		got += k
	}
	took := time.Since(began)
	require.Equal(t, uapi.WCRetryExcErr, wc[0].Status)
	for _, c := range wc[1:] {
		require.Equal(t, uapi.WCWRFlushErr, c.Status)
	}
	require.GreaterOrEqual(t, took, from.bound/2)
	require.Less(t, took, 2*from.bound+busy)
}

// busy is how much longer than it should everything may take on a machine that
// does other things.
const busy = 30 * time.Second

// memory is the room in bytes of a side's buffer.
const memory = 4 << 20

// side is a connected queue pair with a registered buffer.
type side struct {
	t      *testing.T
	device *uapi.Device
	qp     uapi.QP
	mr     uapi.MR
	buf    []byte
	peer   uapi.Region
	bound  time.Duration // how long a silent peer is believed in
}

// connect makes a device in each namespace and connects A to B.
func connect(t *testing.T, n *Net, four bool, config uapi.QPConfig) (a, b *side) {
	at := [2]netip.Addr{n.A.Addr6, n.B.Addr6}
	if four {
		at = [2]netip.Addr{n.A.Addr4, n.B.Addr4}
	}
	a, b = newSide(t, n.A, at[0]), newSide(t, n.B, at[1])
	server := netip.AddrPortFrom(at[1], 7000).String()
	var l *uapi.Listener
	require.NoError(t, n.B.Do(func() (err error) {
		l, err = b.device.Listen(server, uapi.ListenConfig{})
		return err
	}))
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	config.SendDepth, config.RecvDepth = messages, messages
	accepted := make(chan error, 1)
	go func() {
		accepted <- n.B.Do(func() error {
			r, err := l.Accept(ctx)
			if err == nil {
				_, err = r.CreateQPWith(config)
			}
			if err == nil {
				b.qp, err = r.Accept(ctx, nil)
			}
			return err
		})
	}()
	err := n.A.Do(func() (err error) {
		a.qp, err = a.device.Dial(ctx, server, uapi.DialConfig{QPConfig: config})
		return err
	})
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	for _, s := range []*side{a, b} {
		other := map[*side]*side{a: b, b: a}[s]
		info := must.Get(other.device.QueryMR(other.mr))(t)
		s.peer = info.Region()
		q := must.Get(s.device.QueryQP(s.qp))(t)
		s.bound = time.Duration(q.Retry+1) * q.Timeout
	}
	return a, b
}

func newSide(t *testing.T, e *End, at netip.Addr) *side {
	s := &side{t: t, buf: make([]byte, memory)}
	require.NoError(t, e.Do(func() (err error) {
		s.device, err = uapi.Open(fmt.Sprintf("soft:[%v]", at), uapi.OpenConfig{})
		return err
	}))
	t.Cleanup(func() { require.NoError(t, s.device.Close()) })
	var err error
	s.mr, err = s.device.RegMR(s.buf, uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead|uapi.AccessRemoteAtomic)
	require.NoError(t, err)
	return s
}

func (s *side) must(_ uapi.WRID, err error) { require.NoError(s.t, err) }

// complete waits for n completions, all successes in order.
func (s *side) complete(t *testing.T, n int) (all []uapi.WC) {
	t.Helper()
	longest := time.Duration(0)
	for len(all) < n {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), s.bound+busy)
		wc := make([]uapi.WC, n-len(all))
		k, err := s.device.WaitCQ(ctx, s.qp, wc)
		cancel()
		require.NoError(t, err, "after %d of %d completions", len(all), n)
		longest = max(longest, time.Since(began))
		for _, c := range wc[:k] {
			require.NoError(t, c.Err(), "completion %d of %d", len(all), n)
			all = append(all, c)
		}
	}
	t.Logf("%d completions, at most %v apart", n, longest)
	return all
}

// messages of a cell.
const messages = 48

// pieces are the places of a cell's messages in a buffer, of one byte to eight
// packets each, times size.
func pieces(size uint64) (list [messages][2]uint64) {
	sizes := []uint64{1, 1000, 1024, 1025, 3000, 8192}
	at := uint64(0)
	for i := range list {
		list[i] = [2]uint64{at, size * sizes[i%len(sizes)]}
		at += list[i][1] + uint64(i%5)
	}
	return list
}

// fill makes a side's buffer random and gives what the other's is to be when
// the pieces have been moved.
func fill(from, to *side, size uint64) (want []byte) {
	rand.NewChaCha8([32]byte{1}).Read(from.buf)
	want = bytes.Clone(to.buf)
	for _, p := range pieces(size) {
		copy(want[p[0]:p[0]+p[1]], from.buf[p[0]:])
	}
	return want
}

func writes(t *testing.T, from, to *side, size uint64) {
	want := fill(from, to, size)
	for _, p := range pieces(size) {
		from.must(from.device.PostWrite(from.qp, from.mr, p[0], from.peer.Addr+p[0], from.peer.RKey, p[1]))
	}
	from.complete(t, messages)
	require.True(t, bytes.Equal(want, to.buf))
}

func sends(t *testing.T, from, to *side, size uint64) {
	want := fill(from, to, size)
	for _, p := range pieces(size) {
		to.must(to.device.PostRecv(to.qp, to.mr, p[0], p[1]))
	}
	for i, p := range pieces(size) {
		wr := uapi.WR{ID: uapi.WRID(i), Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Offset: p[0], Length: p[1]}}}
		must.Get(from.device.Post(from.qp, []uapi.WR{wr}))(t)
	}
	for i, c := range to.complete(t, messages) {
		require.Equal(t, pieces(size)[i][1], c.ByteLen)
	}
	from.complete(t, messages)
	require.True(t, bytes.Equal(want, to.buf))
}

func reads(t *testing.T, from, to *side, size uint64) {
	want := fill(to, from, size)
	for _, p := range pieces(size) {
		from.must(from.device.PostRead(from.qp, from.mr, p[0], from.peer.Addr+p[0], from.peer.RKey, p[1]))
	}
	from.complete(t, messages)
	require.True(t, bytes.Equal(want, from.buf))
}

// atomics are carried out once each and in order: each gives what the one
// before has left.
func atomics(t *testing.T, from, to *side, _ uint64) {
	for i := range uint64(messages) {
		old := uapi.SGE{MR: from.mr, Offset: 8 * i, Length: 8}
		if i%2 == 0 {
			from.must(from.device.FetchAdd(from.qp, old, from.peer, 1))
		} else {
			from.must(from.device.CompareSwap(from.qp, old, from.peer, i, i+1))
		}
	}
	from.complete(t, messages)
	for i := range uint64(messages) {
		require.Equal(t, i, binary.NativeEndian.Uint64(from.buf[8*i:]), "what atomic %d found", i)
	}
	require.EqualValues(t, messages, binary.NativeEndian.Uint64(to.buf))
}
