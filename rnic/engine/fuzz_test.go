package engine

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// fuzzed is a queue pair whose region lies between guards that nothing may
// touch.
type fuzzed struct {
	t        *testing.T
	data     []byte
	now      Time
	qp       *QP
	recv     *receives
	all      []byte // guard, region, guard
	mr       *mem.Region
	posted   map[uint64]bool // send work requests without a completion
	received map[uint64]bool
	next     uint64
	b        *Batch
}

const guard = 4096

func newFuzzed(t *testing.T, data []byte) *fuzzed {
	f := &fuzzed{t: t, data: data, now: 1, recv: &receives{}, posted: map[uint64]bool{}, received: map[uint64]bool{}, b: NewBatch(8)}
	words := make([]uint64, 3*guard/8)
	f.all = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 3*guard)
	for i := range f.all {
		f.all[i] = 0xa5
	}
	tab := mem.NewTable([32]byte{3})
	f.mr, _ = tab.Register(testPD, mem.Near(f.all[guard:2*guard]), 0x10000, allAccess)
	f.qp = New(Config{QPN: 1, PD: testPD, Regions: tab, Receives: f.recv, SendDepth: 8, MaxSendSGE: 2, MaxRecvSGE: 2, MaxInline: 8, Stash: NewStash()})
	f.connect()
	return f
}

func (f *fuzzed) connect() {
	a := goodAttr()
	a.PathMTU, a.MaxDestRdAtomic, a.MaxRdAtomic = abi.MTU256, 2, 2
	a.RQPSN, a.SQPSN = 0xfffff8, 0xfffffa
	for _, s := range []struct {
		s abi.QPState
		m abi.QPAttrMask
	}{{abi.QPSReset, 0}, {abi.QPSInit, maskInit}, {abi.QPSRTR, maskRTR}, {abi.QPSRTS, maskRTS}} {
		if err := f.qp.Modify(f.now, s.s, &a, s.m); err != nil {
			f.t.Fatal(err)
		}
	}
	clear(f.posted)
}

func (f *fuzzed) byte() byte {
	if len(f.data) == 0 {
		return 0
	}
	b := f.data[0]
	f.data = f.data[1:]
	return b
}

// near is a number around base, or anywhere.
func (f *fuzzed) near(base uint64) uint64 {
	switch b := f.byte(); {
	case b < 0xc0:
		return base + uint64(int8(b<<2)>>2)
	case b < 0xe0:
		return base + uint64(f.byte())*256
	default:
		var x [8]byte
		for i := range x {
			x[i] = f.byte()
		}
		return binary.LittleEndian.Uint64(x[:])
	}
}

func (f *fuzzed) length() uint32 {
	switch b := f.byte(); {
	case b < 0x40:
		return uint32(b)
	case b < 0x80:
		return 256 + uint32(b&0xf) - 8
	case b < 0xf0:
		return uint32(b&0x3f) * 64
	default:
		return uint32(f.near(MaxMessage))
	}
}

func (f *fuzzed) key() uint32 {
	if b := f.byte(); b < 0xe0 {
		return f.mr.Key()
	}
	return uint32(f.near(uint64(f.mr.Key())))
}

// packet is any packet that Parse could have made, mostly nearly a valid one.
func (f *fuzzed) packet() *wire.Packet {
	p := &wire.Packet{}
	p.Opcode = wire.Opcode(f.byte() % 0x20)
	if f.byte() == 0xff {
		p.Opcode = wire.Opcode(f.byte())
	}
	base := f.qp.rsp.next.psn()
	if p.Opcode.IsResponse() {
		base = f.qp.req.una.psn()
	}
	flags := f.byte()
	p.BTH = wire.BTH{
		Opcode: p.Opcode, PKey: wire.DefaultPKey, AckReq: flags&1 != 0, Solicited: flags&2 != 0,
		PSN: wire.PSN(f.near(uint64(base))) & wire.MaxPSN, Selective: f.byte() < 0xc0, FECN: flags&0x20 != 0, BECN: flags&0x40 != 0,
	}
	if flags&0x1c == 0 {
		p.PSN = base
	}
	p.RETH = wire.RETH{VA: f.near(0x10000), RKey: f.key(), DMALen: f.length()}
	p.AtomicETH = wire.AtomicETH{VA: f.near(0x10000) &^ uint64(flags>>5), RKey: f.key(), SwapAdd: 1}
	switch b := f.byte(); {
	case b < 0xa0:
		p.AETH.Syndrome = 31
	case b < 0xd0:
		p.AETH.Syndrome = nakSeq + wire.Syndrome(b&3)
	default:
		p.AETH.Syndrome = wire.Syndrome(f.byte())
	}
	if w := f.oldest(); w != nil && p.Opcode.IsResponse() && flags&0x1c == 0 && w.kind.returnsData() {
		// The answer that the oldest request waits for.
		p.Opcode = wire.RCAtomicAck
		if w.kind.operation == wire.OpRead {
			off := uint64(f.qp.req.una-w.first) * 256
			p.Payload = make([]byte, min(uint64(w.length)-off, 256))
			p.Pad = wire.PadLen(len(p.Payload))
			p.Opcode = wire.RCReadResponseMiddle
			if f.qp.req.una+1 == w.end {
				p.Opcode = wire.RCReadResponseLast
			}
		}
		return p
	}
	if p.Opcode == wire.RCAck && p.Selective && p.AETH.Syndrome.IsNAK() {
		for range f.byte() % 140 {
			p.Payload = append(p.Payload, f.byte())
		}
	}
	if n := f.length(); p.Opcode.HasPayload() {
		p.Payload = bytes.Repeat([]byte{1}, int(n%4097))
		p.Pad = wire.PadLen(len(p.Payload))
	}
	return p
}

// oldest is the work request that waits for an answer.
func (f *fuzzed) oldest() *sendWR {
	if f.qp.State() != abi.QPSRTS || f.qp.req.una == f.qp.req.sent {
		return nil
	}
	return f.qp.sq.at(f.qp.sq.head)
}

func (f *fuzzed) sge() mem.SGE {
	return mem.SGE{Addr: f.near(0x10000), Length: f.length(), LKey: f.key()}
}

func (f *fuzzed) step() {
	switch f.byte() % 8 {
	case 0, 1, 2:
		f.qp.Receive(f.now, f.qp.attr.Peer.Addr(), f.packet())
	case 3:
		f.next++
		wr := SendWR{ID: f.next, Opcode: abi.WROpcode(f.byte() % 16), Flags: abi.SendFlags(f.byte()), RemoteAddr: 0x10000, RKey: f.key(), SGE: []mem.SGE{f.sge()}}
		if wr.Opcode == abi.WRAtomicFetchAndAdd {
			wr.SGE[0].Length = 8
		}
		wr.Inline = make([]byte, f.byte()%10)
		if f.qp.Post(f.now, &wr) == nil {
			f.posted[f.next] = true
		}
	case 4:
		f.next++
		f.received[f.next] = true
		f.recv.list = append(f.recv.list, ReceiveWR{ID: f.next, SGE: []mem.SGE{f.sge(), f.sge()}})
	case 5:
		f.transmit()
	case 6:
		if t, ok := f.qp.NextTimeout(); ok {
			f.now = max(f.now, t)
		}
		f.qp.HandleTimeout(f.now)
	case 7:
		switch b := f.byte(); {
		case b < 4:
			_ = f.qp.Modify(f.now, abi.QPState(b), &f.qp.attr, 0)
			if b == 0 {
				clear(f.posted)
				clear(f.received)
				f.recv.list = nil
				f.connect()
			}
		case b < 6:
			_ = f.qp.Modify(f.now, abi.QPSErr, &Attr{}, 0)
		}
	}
	f.complete()
	f.checkScores()
}

// checkScores: idle is the cost of the packets that are not in flight, and
// nothing beyond the span has a state.
func (f *fuzzed) checkScores() {
	q := f.qp
	x := q.extension
	if x == nil || !q.sends() || x.at == nil {
		return
	}
	idle, states := 0, 0
	for i, s := q.sq.head, q.req.una; s < q.req.una+seq(len(x.at)); s++ {
		at := *x.state(s)
		if at == unknown {
			continue
		}
		for q.sq.at(i).end <= s {
			i++
		}
		if states++; at < 0 {
			idle += x.costOf(q.sq.at(i), s)
		}
	}
	if idle != x.idle || states > 0 && x.hi <= q.req.una || q.inFlight() < 0 {
		f.t.Fatalf("idle %d, counted %d of %d states, in flight %d", x.idle, idle, states, q.inFlight())
	}
}

func (f *fuzzed) transmit() {
	for range 1000 {
		f.b.Reset()
		if !f.qp.Transmit(f.now, f.b) {
			return
		}
		for _, p := range f.b.Packets {
			if len(p.Payload) > 256 {
				f.t.Fatalf("%d bytes in a packet of path MTU 256", len(p.Payload))
			}
		}
	}
	f.t.Fatal("Transmit never ends")
}

// complete checks that everything completes at most once.
func (f *fuzzed) complete() {
	var wcs [4]Completion
	for n := len(wcs); n == len(wcs); {
		n = f.qp.Completions(wcs[:])
		for _, c := range wcs[:n] {
			open := f.posted
			if c.Recv {
				open = f.received
			}
			if !open[c.ID] {
				f.t.Fatalf("completion of %d, which is not outstanding", c.ID)
			}
			delete(open, c.ID)
		}
	}
}

// Any packets in any state: no panic, no endless loop, no byte outside the
// region, every work request completed at most once, and in ERR exactly once.
func FuzzQueuePair(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0, 10, 0, 1, 0, 0, 0, 0, 5}, 40))
	f.Add(bytes.Repeat([]byte{3, 4, 2, 0, 0, 0x90, 0, 0, 5, 1, 16, 0, 1, 0}, 40))
	f.Add(bytes.Repeat([]byte{4, 0, 0, 0, 0, 0x90, 0, 0, 4, 0, 1, 0, 0, 0x90, 5, 6}, 40))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := newFuzzed(t, data)
		for i := 0; len(x.data) > 0 && i < 2000; i++ {
			x.step()
		}
		_ = x.qp.Modify(x.now, abi.QPSErr, &Attr{}, 0)
		x.complete()
		if len(x.posted)+len(x.received) != 0 {
			t.Fatalf("not flushed: %v %v", x.posted, x.received)
		}
		if n := x.qp.cfg.Stash.Len(); n != 0 {
			t.Fatalf("%d packets are kept in ERR", n)
		}
		edge := bytes.Repeat([]byte{0xa5}, guard)
		if !bytes.Equal(x.all[:guard], edge) || !bytes.Equal(x.all[2*guard:], edge) {
			t.Fatal("memory outside the region was touched")
		}
	})
}

// The same with random bytes, so that every run goes deeper than the seeds.
func TestRandomPackets(t *testing.T) {
	var reached Counters
	for seed := range uint64(1500) {
		data := make([]byte, 4000)
		x := seed
		for i := range data {
			x = x*6364136223846793005 + 1442695040888963407
			data[i] = byte(x >> 40)
		}
		f := newFuzzed(t, data)
		for len(f.data) > 0 {
			f.step()
			if f.qp.State() == abi.QPSErr && f.byte()&3 == 0 {
				f.connect()
			}
		}
		reached.Add(f.qp.Counters())
	}
	reached.Each(func(name string, n uint64) {
		switch name {
		case "drop_peer", "drop_pkey", "retry_exceeded_err", "retry_rnr_exceeded_err":
		case "drop_qkey", "drop_no_receive", "drop_too_long", "drop_request": // of datagrams and UC
		default:
			if n == 0 {
				t.Errorf("never reached: %s", name)
			}
		}
	})
}
