package foreign_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/foreign"
	"github.com/rdmashim/rdmashim/tests/virtual"
)

const (
	requests = 40                 // of each end
	longest  = 9000               // bytes of a message
	slots    = requests * longest // a slot of each region for each request
	regionVA = 0x10000
	key      = 0x5eed
)

// bed is an engine's queue pair that is connected to a foreign end, and the
// state in which both are to end.
type bed struct {
	virtual.Unwatched
	w     *virtual.World
	rand  virtual.Rand
	qp    *virtual.QP
	peer  *foreign.Peer
	key   uint32 // of ours
	local *mem.Region
	mem   []byte // what the engine sends from and receives into
	ours  []byte // the region that the foreign end asks for
	reads int

	posted, done int               // the engine's requests
	sent         []foreign.Message // by the engine, where one is to arrive; of a WRITE without Data
	got          int               // messages that the engine received
	expect       []foreign.Message // that it is to
	checks       []func(t *testing.T)
	adds, sum    uint64 // fetch-and-adds of the foreign end to a word of ours
}

// Completed makes it a virtual.Watcher.
func (b *bed) Completed(_ *virtual.QP, c *engine.Completion) {
	switch {
	case c.Status != abi.WCSuccess:
		b.w.Fail(fmt.Errorf("the engine's request %d: %v", c.ID, c.Status))
	case !c.Recv:
		if int(c.ID) != b.done {
			b.w.Fail(fmt.Errorf("request %d completes, and %d is next", c.ID, b.done))
		}
		b.done++
		b.w.At(b.w.Now(), b.post)
	default:
		want := b.expect[b.got]
		have := b.mem[int(c.ID)*longest:][:c.ByteLen]
		if want.Data == nil { // a WRITE's immediate data
			have = nil
		}
		if string(have) != string(want.Data) {
			b.w.Fail(fmt.Errorf("message %d to the engine has %d bytes, other than its %d", b.got, len(have), len(want.Data)))
		}
		if imm := binary.BigEndian.Uint32(c.Imm[:]); want.HasImm != (c.Flags&abi.WCWithImm != 0) || imm != want.Imm {
			b.w.Fail(fmt.Errorf("message %d to the engine has the immediate %d, %v, not %d", b.got, imm, c.Flags, want.Imm))
		}
		b.got++
	}
}

func newBed(t *testing.T, seed uint64) *bed {
	b := &bed{rand: virtual.NewRand(seed)}
	r := &b.rand
	mtu := []abi.MTU{abi.MTU256, abi.MTU1024, abi.MTU4096}[r.Intn(3)]
	f := virtual.Faults{MaxHold: 200 * engine.Microsecond}
	if seed%4 != 0 {
		f.Loss, f.Dup, f.Reorder, f.Corrupt = float64(r.Intn(5))/100, float64(r.Intn(5))/100, float64(r.Intn(10))/100, float64(r.Intn(3))/100
	}
	b.w = virtual.New(virtual.Options{Seed: seed, Faults: f, Watch: b, Batching: engine.Duration(r.Intn(20)) * engine.Microsecond})
	x := b.w.AddNode("engine", netip.MustParseAddr("10.0.0.1"))
	y := b.w.AddNode("foreign", netip.MustParseAddr("10.0.0.2"))
	b.mem, b.ours = make([]byte, 2*slots+8*requests), make([]byte, slots+8)
	var err error
	b.local, err = x.Regions.Register(1, mem.Near(b.mem), regionVA, abi.AccessLocalWrite)
	require.NoError(t, err)
	region, err := x.Regions.Register(1, mem.Near(b.ours), regionVA, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead|abi.AccessRemoteAtomic)
	require.NoError(t, err)
	b.key, b.reads = region.Key(), r.Between(1, 8)
	here, there := wire.PSN(r.Intn(1<<24)), wire.PSN(r.Intn(1<<24))
	b.qp = x.AddQP(engine.Config{QPN: 17, PD: 1, SigAll: true, SendDepth: requests, MaxSendSGE: 1, MaxRecvSGE: 1})
	require.NoError(t, b.qp.Connect(engine.Attr{
		Access: abi.AccessRemoteWrite | abi.AccessRemoteRead | abi.AccessRemoteAtomic, PathMTU: mtu, MaxRdAtomic: uint8(b.reads), MaxDestRdAtomic: uint8(b.reads),
		MinRNRTimer: 1, Timeout: 14, RetryCnt: 7, RNRRetry: 7, Peer: netip.AddrPortFrom(y.Addr, wire.Port), DestQPN: 99, SQPSN: here, RQPSN: there,
	}))
	b.peer = foreign.New(foreign.Config{
		World: b.w, Node: y, To: x, QPN: 17, MTU: mtu.Bytes(), PSN: there, Expect: here, Reads: b.reads,
		RKey: key, VA: regionVA, Memory: make([]byte, slots+8), Timeout: 4 * engine.Millisecond, Rand: r.Fork(),
	})
	return b
}

// bytes are so many random ones.
func (b *bed) bytes() []byte {
	p := make([]byte, b.rand.Intn(longest)*b.rand.Intn(2)+b.rand.Intn(300))
	b.rand.Fill(p[:min(len(p), longest)])
	return p[:min(len(p), longest)]
}

// post has the engine ask for the next thing.
func (b *bed) post() {
	if b.posted == requests {
		return
	}
	i := b.posted
	b.posted++
	data := b.bytes()
	at := uint64(slots + i*longest) // the receives are before
	copy(b.mem[at:], data)
	wr := &engine.SendWR{
		ID: uint64(i), RKey: key, RemoteAddr: regionVA + uint64(i*longest),
		SGE: []mem.SGE{{Addr: regionVA + at, Length: uint32(len(data)), LKey: b.local.Key()}},
	}
	written := func(t *testing.T) {
		require.Equal(t, data, b.peer.Memory[i*longest:][:len(data)], "the engine's WRITE %d", i)
	}
	imm := uint32(i)
	binary.BigEndian.PutUint32(wr.Imm[:], imm)
	switch b.rand.Intn(6) {
	case 0:
		wr.Opcode = abi.WRSend
		b.sent = append(b.sent, foreign.Message{Data: data})
	case 1:
		wr.Opcode = abi.WRSendWithImm
		b.sent = append(b.sent, foreign.Message{Data: data, Imm: imm, HasImm: true})
	case 2:
		wr.Opcode = abi.WRRDMAWrite
		b.checks = append(b.checks, written)
	case 3:
		wr.Opcode = abi.WRRDMAWriteWithImm
		b.sent = append(b.sent, foreign.Message{Imm: imm, HasImm: true})
		b.checks = append(b.checks, written)
	case 4:
		wr.Opcode = abi.WRRDMARead
		copy(b.peer.Memory[i*longest:], data)
		clear(b.mem[at:][:len(data)])
		b.checks = append(b.checks, func(t *testing.T) {
			require.Equal(t, data, b.mem[at:][:len(data)], "the engine's READ %d", i)
		})
	case 5:
		wr.Opcode, wr.CompareAdd = abi.WRAtomicFetchAndAdd, uint64(i)
		wr.RemoteAddr = regionVA + slots
		wr.SGE[0] = mem.SGE{Addr: regionVA + 2*slots + uint64(8*i), Length: 8, LKey: b.local.Key()}
		b.sum += uint64(i)
	}
	if err := b.qp.Post(wr); err != nil {
		b.w.Fail(err)
	}
}

// ask has the foreign end ask for all.
func (b *bed) ask() (list []*foreign.Request) {
	for i := range requests {
		data := b.bytes()
		r := &foreign.Request{VA: regionVA + uint64(i*longest), RKey: b.key, Data: data}
		written := func(t *testing.T) { require.Equal(t, data, b.ours[i*longest:][:len(data)], "the foreign WRITE %d", i) }
		switch b.rand.Intn(6) {
		case 0:
			r.Operation = wire.OpSend
			b.expect = append(b.expect, foreign.Message{Data: bytes.Clone(data)})
		case 1:
			r.Operation, r.HasImm, r.Imm = wire.OpSend, true, uint32(i)
			b.expect = append(b.expect, foreign.Message{Data: bytes.Clone(data), Imm: r.Imm, HasImm: true})
		case 2:
			r.Operation = wire.OpWrite
			b.checks = append(b.checks, written)
		case 3:
			r.Operation, r.HasImm, r.Imm = wire.OpWrite, true, uint32(i)
			b.expect = append(b.expect, foreign.Message{Imm: r.Imm, HasImm: true})
			b.checks = append(b.checks, written)
		case 4:
			r.Operation = wire.OpRead
			copy(b.ours[i*longest:], data)
			r.Data = make([]byte, len(data))
			b.checks = append(b.checks, func(t *testing.T) { require.Equal(t, data, r.Data, "the foreign READ %d", i) })
		case 5:
			r.Operation, r.SwapAdd, r.VA, r.Data = wire.OpFetchAdd, uint64(i), regionVA+slots, make([]byte, 8)
			b.adds += uint64(i)
		}
		list = append(list, r)
	}
	return list
}

// TestForeign: the engine and an end that was written from the specification
// alone exchange all kinds of requests in both directions, with faults and with
// late receives: each takes effect once, in order, and whole.
func TestForeign(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 60)
	}
	for seed := range uint64(n) {
		b := newBed(t, seed)
		asks := b.ask()
		// Receives come in handfuls, at times too late.
		late := engine.Time(0)
		given := 0
		for given < requests {
			n := min(b.rand.Between(1, 6), requests-given)
			first := given
			b.w.At(late, func() {
				b.peer.PostReceives(n)
				for i := first; i < first+n; i++ {
					b.qp.PostReceive(engine.ReceiveWR{ID: uint64(i), SGE: []mem.SGE{{Addr: regionVA + uint64(i*longest), Length: longest, LKey: b.local.Key()}}})
				}
				b.qp.Poke()
			})
			given += n
			late += engine.Time(b.rand.Intn(int(300 * engine.Microsecond)))
		}
		for range 1 + b.rand.Intn(16) {
			b.w.At(0, b.post)
		}
		b.w.At(0, func() {
			for _, r := range asks {
				b.peer.Post(r)
			}
		})
		require.NoError(t, b.w.Run(engine.Time(20*engine.Second), 2_000_000), "seed %d", seed)
		require.Equal(t, requests, b.done, "seed %d: the engine's requests", seed)
		require.Equal(t, requests, b.peer.Done, "seed %d: the foreign end's requests", seed)
		require.Len(t, b.peer.Got, len(b.sent), "seed %d", seed)
		for i, m := range b.peer.Got {
			want := b.sent[i]
			require.Equal(t, string(want.Data), string(m.Data), "seed %d: message %d of the engine", seed, i)
			require.Equal(t, [2]any{want.HasImm, want.Imm}, [2]any{m.HasImm, m.Imm}, "seed %d: message %d of the engine", seed, i)
		}
		require.Len(t, b.expect, b.got, "seed %d: messages to the engine", seed)
		for _, check := range b.checks {
			check(t)
		}
		require.Equal(t, b.adds, binary.NativeEndian.Uint64(b.ours[slots:]), "seed %d", seed)
		require.Equal(t, b.sum, binary.NativeEndian.Uint64(b.peer.Memory[slots:]), "seed %d", seed)
		require.NoError(t, b.w.Account(), "seed %d", seed)
	}
}
