package engine

import (
	"bytes"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/wiretest"
)

const datagramQKey = 0x11111111

// dhost is a queue pair for datagrams with a region and receives.
type dhost struct {
	t    testing.TB
	qp   *Datagrams
	addr netip.AddrPort
	mem  []byte
	mr   *mem.Region
	recv receives
}

func newDatagramHost(t testing.TB, addr string, edit func(*DatagramConfig)) *dhost {
	h := &dhost{t: t, addr: netip.MustParseAddrPort(addr), mem: make([]byte, 1<<16)}
	tab := mem.NewTable([32]byte{7})
	h.mr = must.Get(tab.Register(testPD, mem.Near(h.mem), 0x20000, allAccess))(t)
	c := DatagramConfig{MTU: 1024, Local: h.addr.Addr(), Config: Config{
		QPN: wire.QPN(0x100 + uint32(h.addr.Addr().As16()[15])), PD: testPD, Regions: tab, Receives: &h.recv,
		SendDepth: 8, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInline: 64,
	}}
	if edit != nil {
		edit(&c)
	}
	h.qp = NewDatagrams(c)
	return h
}

func (h *dhost) to(s abi.QPState, a Attr, mask abi.QPAttrMask) {
	h.t.Helper()
	require.NoError(h.t, h.qp.Modify(1, s, &a, mask))
}

func (h *dhost) start() *dhost {
	h.t.Helper()
	h.to(abi.QPSInit, Attr{QKey: datagramQKey}, abi.QPMaskQKey)
	h.to(abi.QPSRTR, Attr{}, 0)
	h.to(abi.QPSRTS, Attr{SQPSN: 0xfffffe}, abi.QPMaskSQPSN)
	return h
}

func (h *dhost) sge(off, n int) []mem.SGE {
	return []mem.SGE{{Addr: h.mr.IOVA() + uint64(off), Length: uint32(n), LKey: h.mr.Key()}}
}

func (h *dhost) wr(id uint64, to *dhost, off, n int) SendWR {
	return SendWR{ID: id, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: h.sge(off, n),
		To: Destination{to.addr, to.qp.cfg.QPN, datagramQKey}}
}

// transmit returns the packets that leave, as they arrive.
func (h *dhost) transmit() (list []wire.Packet) {
	h.t.Helper()
	b := NewBatch(4)
	for more := true; more; {
		b.Reset()
		more = h.qp.Transmit(1, b)
		for _, p := range b.Packets {
			raw := append(append([]byte{}, p.Head...), p.Payload...)
			raw = append(raw, wire.Pad(wire.PadLen(len(p.Payload)))...)
			var got wire.Packet
			require.NoError(h.t, got.Parse(raw))
			list = append(list, got)
		}
	}
	return list
}

func (h *dhost) completions() []Completion {
	buf := make([]Completion, 100)
	return buf[:h.qp.Completions(buf)]
}

func datagramPair(t testing.TB, edit func(*DatagramConfig)) (a, b *dhost) {
	return newDatagramHost(t, "10.0.0.1:4791", edit).start(), newDatagramHost(t, "10.0.0.2:4791", edit).start()
}

// A packet that leaves has the fields of the request, and the first bytes are
// those that rxe sends but for two bits that mean nothing there.
func TestDatagramAsRecorded(t *testing.T) {
	n := 0
	for _, file := range []string{"rxe-6.1-uc-ud.pcap", "rxe-6.1-cm.pcap", "soft-rxe-6.1-ipv6-unreliable.pcap"} {
		frames := must.Get(wiretest.ReadFile(filepath.Join("../../tests/testdata", file)))(t)
		for _, f := range frames {
			body := f.UDP[:len(f.UDP)-wire.ICRCLen]
			var p wire.Packet
			require.NoError(t, p.Parse(body))
			if p.Opcode.Service() != wire.ServiceUD {
				continue
			}
			n++
			d := Datagram{Peer: netip.MustParseAddrPort("10.0.0.1:4791"), DestQPN: p.DestQPN, SrcQPN: p.DETH.SrcQPN, QKey: p.DETH.QKey, PSN: p.PSN,
				Solicited: p.Solicited, HasImm: p.Opcode.HasImm()}
			v := p.ImmDt.Data
			d.Imm = [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
			b := NewBatch(1)
			b.AddDatagram(&d, p.Payload)
			got := append(append(bytes.Clone(b.Packets[0].Head), b.Packets[0].Payload...), wire.Pad(wire.PadLen(len(p.Payload)))...)
			require.Equal(t, d.Peer, b.Packets[0].Peer)
			require.NotZero(t, got[1]&0x40)
			got[1] = got[1]&^0x40 | body[1]&0x40
			got[8] |= body[8] & 0x80 // rxe asks for an acknowledgement, which datagrams have none of
			require.Equal(t, body, got)
			require.Equal(t, Accepted, CheckDatagram(&p, p.DETH.QKey))
			require.Equal(t, WrongQKey, CheckDatagram(&p, p.DETH.QKey+1))
		}
	}
	require.Greater(t, n, 50)
}

func TestDatagramNoAllocations(t *testing.T) {
	a, b := datagramPair(t, nil)
	batch := NewBatch(4)
	wr, sge := a.wr(1, b, 0, 1024), b.sge(0, 2000)
	wr.Flags = 0
	var wcs [4]Completion
	var p wire.Packet
	b.recv.list = make([]ReceiveWR, 0, 4)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.recv.list = append(b.recv.list, ReceiveWR{ID: 1, SGE: sge})
		batch.Reset()
		if a.qp.Post(1, &wr) != nil || a.qp.Transmit(1, batch) {
			panic("post")
		}
		if p.Parse(batch.Packets[0].Head) != nil {
			panic("parse")
		}
		p.Payload = batch.Packets[0].Payload
		b.qp.Receive(1, a.addr.Addr(), &p)
		if a.qp.Completions(wcs[:]) != 1 || b.qp.Completions(wcs[:]) != 1 || wcs[0].ByteLen != 1064 {
			panic("completions")
		}
	}))
}

// FuzzDatagrams: whatever packets, requests and receives come in whatever
// state, everything completes exactly once in the end.
func FuzzDatagrams(f *testing.F) {
	f.Add([]byte{0, 20, 1, 0, 30, 2, 3, 4, 1, 9, 200})
	f.Add(bytes.Repeat([]byte{0, 45, 1, 8, 2, 0, 12, 3}, 20))
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() (v byte) {
			if len(data) > 0 {
				v, data = data[0], data[1:]
			}
			return v
		}
		a, b := datagramPair(t, nil)
		open := map[uint64]bool{}
		collect := func() {
			for wcs := a.completions(); len(wcs) > 0; wcs = a.completions() {
				for _, c := range wcs {
					require.True(t, open[c.ID], "completion of %d", c.ID)
					delete(open, c.ID)
				}
			}
		}
		id := uint64(0)
		for len(data) > 0 {
			id++
			switch next() % 5 {
			case 0:
				a.recv.list = append(a.recv.list, ReceiveWR{ID: id, SGE: a.sge(int(next()), int(next())*8)})
				open[id] = true
			case 1:
				wr := a.wr(id, b, int(next()), int(next())*8)
				wr.Opcode, wr.Flags = abi.WROpcode(next()), abi.SendFlags(next())
				if a.qp.Post(1, &wr) == nil {
					open[id] = true
				}
				a.transmit()
			case 2:
				p := wire.Packet{BTH: wire.BTH{Opcode: wire.Opcode(next()), PKey: wire.DefaultPKey}, DETH: wire.DETH{QKey: datagramQKey + uint32(next()&1)}}
				n := int(next()) // before len(data), which it changes
				p.Payload = data[:min(len(data), n)]
				a.qp.Receive(1, b.addr.Addr(), &p)
			case 3:
				to := abi.QPState(next() % 7)
				if a.qp.Modify(1, to, &Attr{QKey: datagramQKey}, abi.QPMaskQKey) == nil && to == abi.QPSReset {
					clear(open)
					for _, r := range a.recv.list { // the ring is the caller's
						open[r.ID] = true
					}
				}
			case 4:
				collect()
			}
		}
		require.NoError(t, a.qp.Modify(1, abi.QPSErr, &Attr{}, 0))
		collect()
		require.Empty(t, open)
	})
}
