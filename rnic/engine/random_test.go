package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Random requests in both directions over a network that loses, doubles and
// delays: everything completes once, in order, with its effect. The broad soak
// is tests/soak; this one finds a mistake without leaving the package.
func TestRandomFaults(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 20
	}
	var total Counters
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomRun(t, uint64(seed), &total) })
	}
	for name, v := range map[string]uint64{
		"retransmitted": total.RetransmittedPkts, "timeouts": total.Timeouts, "implied NAKs": total.ImpliedNAKs,
		"duplicates": total.DuplicateRequest, "sequence NAKs": total.NAKSeqRcvd, "RNR": total.RNRRcvd,
		"sends": total.Sends, "writes": total.Writes, "reads": total.Reads, "atomics": total.Atomics,
		"stale": total.DropStaleAck,
	} {
		require.NotZero(t, v, name)
	}
	t.Logf("%+v", total)
}

func randomRun(t *testing.T, seed uint64, total *Counters) {
	rng := rand.New(rand.NewPCG(seed, 1))
	mtu := abi.MTU(1 + rng.IntN(5))
	n := newPair(t, cfg{mtu: mtu, psnA: wire.PSN(rng.Uint32()), psnB: 0xffff80, attr: func(_ int, a *Attr) {
		a.MaxRdAtomic = uint8(1 + rng.IntN(4))
		a.Timeout = 0 // nothing may fail
	}, edit: func(side int, c *Config) {
		c.Tuning.AckDelay = testDelay * Duration(seed>>side&1)
	}})
	loss, dup, reorder := rng.Float64()*0.15, rng.Float64()*0.1, rng.Float64()*0.15
	n.filter = func(_ *host, p *wire.Packet) (int, Time) {
		copies, delay := 1, Time(0)
		switch x := rng.Float64(); {
		case x < loss:
			copies = 0
		case x < loss+dup:
			copies = 2
		}
		if rng.Float64() < reorder {
			delay = Time(rng.IntN(200_000))
		}
		return copies, delay
	}
	m := [2]*model{newModel(n, n.a, rng), newModel(n, n.b, rng)}
	for range 25 {
		for _, x := range m {
			for range rng.IntN(4) {
				x.post()
			}
		}
		n.run(n.now + Time(rng.IntN(3_000_000)))
		n.recvLate(m)
	}
	for range 1000 {
		if m[0].done() && m[1].done() {
			break
		}
		n.recvLate(m)
		n.run(n.now + 50_000_000)
	}
	for _, x := range m {
		x.check()
		total.Add(x.h.qp.Counters())
	}
}

// recvLate posts the receives that posted messages will need: sometimes after
// the messages, so that RNR happens.
func (n *network) recvLate(m [2]*model) {
	for i, x := range m {
		y := m[1-i]
		for ; y.recvs < x.consumed; y.recvs++ {
			y.h.postRecv(uint64(y.recvs), recvArea+y.recvs%recvSlots*recvSlot, recvSlot)
		}
	}
}

// The region: [0, 256 Ki) sources, then receives, then the area that the peer
// writes and reads, then READ results, then atomic results and the atomic word.
const (
	recvArea   = 256 << 10
	recvSlot   = 4 << 10
	recvSlots  = 32
	writeArea  = 512 << 10
	readArea   = 768 << 10
	atomicArea = 960 << 10
)

// model is one side's expectation.
type model struct {
	n        *network
	h, peer  *host
	rng      *rand.Rand
	posted   []SendWR
	consumed int // receives that the posted messages consume at the peer
	recvs    int // receives posted here
	writes   []byte
	sum      uint64
	msgs     []msg
}

type msg struct {
	data []byte
	imm  bool
	id   uint64
}

func newModel(n *network, h *host, rng *rand.Rand) *model {
	fill(h.mem[:recvArea], int(h.addr.Addr().As4()[3]))
	fill(h.mem[readArea-64<<10:readArea], 99) // for the peer's READs
	return &model{n: n, h: h, peer: n.peer(h), rng: rng, writes: make([]byte, 128<<10)}
}

func (m *model) length() int {
	switch m.rng.IntN(3) {
	case 0:
		return m.rng.IntN(20)
	case 1:
		return m.rng.IntN(recvSlot)
	}
	return m.rng.IntN(40 << 10)
}

func (m *model) post() {
	if m.h.qp.Outstanding() >= m.h.qp.cfg.SendDepth-1 || m.consumed-m.done0() > recvSlots-4 {
		return
	}
	id := uint64(len(m.posted))
	off, l := m.rng.IntN(100_000), m.length()
	wr := SendWR{ID: id, RKey: m.peer.key(), RemoteAddr: m.peer.va(writeArea), Imm: [4]byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}}
	if m.rng.IntN(4) == 0 {
		wr.Flags |= abi.SendFence
	}
	switch m.rng.IntN(6) {
	case 0, 1: // WRITE, its target moves on so that order shows
		at := m.rng.IntN(len(m.writes) - l)
		wr.Opcode, wr.SGE, wr.RemoteAddr = abi.WRRDMAWrite, m.h.sge(off, l), m.peer.va(writeArea+at)
		copy(m.writes[at:], m.h.mem[off:off+l])
		if m.rng.IntN(2) == 0 {
			wr.Opcode = abi.WRRDMAWriteWithImm
			m.msgs = append(m.msgs, msg{m.h.mem[off : off+l], true, id})
			m.consumed++
		}
	case 2, 3:
		l %= recvSlot + 1
		wr.Opcode, wr.SGE = abi.WRSend, m.h.sge(off, l)
		m.msgs = append(m.msgs, msg{m.h.mem[off : off+l], false, id})
		m.consumed++
	case 4:
		l %= 32 << 10
		wr.Opcode, wr.SGE, wr.RemoteAddr = abi.WRRDMARead, m.h.sge(readArea+int(id%5)*(32<<10), l), m.peer.va(readArea-64<<10)
	case 5:
		wr.Opcode, wr.SGE, wr.RemoteAddr = abi.WRAtomicFetchAndAdd, m.h.sge(atomicArea+8*int(id), 8), m.peer.va(regionLen-8)
		wr.CompareAdd = 1 + id
	}
	m.posted = append(m.posted, wr)
	m.n.post(m.h, wr)
}

// done0 is how many of the peer's receives completed.
func (m *model) done0() int {
	k := 0
	for _, c := range m.peer.wcs {
		if c.Recv {
			k++
		}
	}
	return k
}

func (m *model) done() bool { return m.h.qp.Outstanding() == 0 && m.done0() == m.consumed }

func (m *model) check() {
	t := m.n.t
	var sends, recvs []Completion
	for _, c := range m.h.wcs {
		require.Equal(t, abi.WCSuccess, c.Status)
		if !c.Recv {
			sends = append(sends, c)
		}
	}
	for _, c := range m.peer.wcs {
		if c.Recv {
			recvs = append(recvs, c)
		}
	}
	require.Len(t, sends, len(m.posted))
	require.True(t, bytes.Equal(m.writes, m.peer.mem[writeArea:writeArea+len(m.writes)]), "what was written")
	for i, wr := range m.posted {
		require.EqualValues(t, i, sends[i].ID)
		switch wr.Opcode {
		case abi.WRAtomicFetchAndAdd:
			require.Equal(t, m.sum, *m.h.word(atomicArea + 8*i), "each atomic happened once, in order")
			m.sum += wr.CompareAdd
		case abi.WRRDMARead:
			l := int(wr.SGE[0].Length)
			at := int(wr.SGE[0].Addr - m.h.mr.IOVA())
			if i+5 >= len(m.posted) { // no later READ went there
				require.True(t, bytes.Equal(m.peer.mem[readArea-64<<10:][:l], m.h.mem[at:at+l]), "READ")
			}
		}
	}
	require.Equal(t, m.sum, *m.peer.word(regionLen - 8))
	require.Len(t, recvs, len(m.msgs))
	for i, x := range m.msgs {
		require.EqualValues(t, i, recvs[i].ID)
		require.EqualValues(t, len(x.data), recvs[i].ByteLen)
		require.Equal(t, x.imm, recvs[i].Flags&abi.WCWithImm != 0)
		if !x.imm && i+recvSlots >= len(m.msgs) {
			at := recvArea + i%recvSlots*recvSlot
			require.True(t, bytes.Equal(x.data, m.peer.mem[at:at+len(x.data)]), "message %d", i)
		}
	}
}
