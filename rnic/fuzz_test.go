package rnic

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// victim is a device with a connected queue pair that has work outstanding and
// whose packets go nowhere.
func victim(t testing.TB) *testDevice {
	d := newDevice(t, newFixed("10.0.0.1:4791", 65507), 1<<14, qpOptions{})
	peer := dest(d.Device)
	peer.DGID[15] = 2
	at := defaults()
	d.qp.toInit(at)
	d.qp.modify(abi.ModifyQP{QPState: abi.QPSRTR, Dest: peer, PathMTU: at.mtu, RQPSN: 100, MinRNRTimer: 1, MaxDestRdAtomic: 4, DestQPNum: 9}, rtrMask)
	d.qp.modify(abi.ModifyQP{QPState: abi.QPSRTS, RetryCnt: 7, RNRRetry: 7, MaxRdAtomic: 4, SQPSN: 200}, rtsMask)
	d.qp.postRecv(1, d.mem.sge(0, 3000))
	d.qp.postRecv(2, d.mem.sge(0, 3000))
	d.qp.post(
		&ring.SendWR{ID: 1, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{d.mem.sge(0, 2500)}},
		&ring.SendWR{ID: 2, Opcode: abi.WRRDMARead, Flags: abi.SendSignaled, SGE: []ring.SGE{d.mem.sge(0, 2500)}},
		&ring.SendWR{ID: 3, Opcode: abi.WRAtomicFetchAndAdd, Flags: abi.SendSignaled, SGE: []ring.SGE{d.mem.sge(0, 8)}})
	return d
}

// FuzzPackets gives a queue pair packets of which everything but the addressing
// is arbitrary: data is a sequence of them, each behind its length.
func FuzzPackets(f *testing.F) {
	add := func(packets ...wire.Packet) {
		var all []byte
		for _, p := range packets {
			p.Pad = wire.PadLen(len(p.Payload))
			b := p.Append(nil)
			all = append(binary.BigEndian.AppendUint16(all, uint16(len(b))), b...)
		}
		f.Add(all)
	}
	bth := func(op wire.Opcode, psn wire.PSN) wire.BTH {
		return wire.BTH{Opcode: op, PSN: psn, MigReq: true, PKey: wire.DefaultPKey, AckReq: true}
	}
	mtu := make([]byte, 1024)
	add(wire.Packet{BTH: bth(wire.RCSendFirst, 100), Payload: mtu}, wire.Packet{BTH: bth(wire.RCSendLast, 101), Payload: mtu[:9]})
	add(wire.Packet{BTH: bth(wire.RCReadRequest, 100), RETH: wire.RETH{VA: 0x7f00_0000_1000, DMALen: 5000}},
		wire.Packet{BTH: bth(wire.RCFetchAdd, 105), AtomicETH: wire.AtomicETH{VA: 0x7f00_0000_1000}})
	add(wire.Packet{BTH: bth(wire.RCAck, 202), AETH: wire.AETH{Syndrome: 0x1f}},
		wire.Packet{BTH: bth(wire.RCReadResponseFirst, 203), AETH: wire.AETH{Syndrome: 0x1f}, Payload: mtu},
		wire.Packet{BTH: bth(wire.RCReadResponseMiddle, 204), Payload: mtu},
		wire.Packet{BTH: bth(wire.RCReadResponseLast, 205), AETH: wire.AETH{Syndrome: 0x1f}, Payload: mtu[:452]},
		wire.Packet{BTH: bth(wire.RCAtomicAck, 206), AETH: wire.AETH{Syndrome: 0x1f}})
	add(wire.Packet{BTH: bth(wire.RCAck, 200), AETH: wire.AETH{Syndrome: 0x60}}, wire.Packet{BTH: bth(wire.RCAck, 200), AETH: wire.AETH{Syndrome: 0x21}})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := victim(t)
		defer d.Close()
		from := netip.MustParseAddrPort("10.0.0.2:4791")
		var in []link.Packet
		for len(data) >= 2 {
			n := min(int(binary.BigEndian.Uint16(data)), len(data)-2)
			head := data[2 : 2+n]
			data = data[2+n:]
			if n >= wire.BTHLen {
				head = append([]byte(nil), head...)
				head[5], head[6], head[7] = byte(d.qp.qp.num>>16), byte(d.qp.qp.num>>8), byte(d.qp.qp.num)
			}
			in = append(in, link.Packet{Peer: from, Head: head})
		}
		d.mu.Lock()
		for len(in) > 0 {
			n := min(2, len(in))
			d.deliver(in[:n])
			d.serveChanged(receiverBatches)
			in = in[n:]
		}
		d.mu.Unlock()
		sane(t, d)
	})
}

// FuzzRings writes arbitrary bytes to the rings' slots and indices.
func FuzzRings(f *testing.F) {
	f.Add(make([]byte, abi.SendWQESize), make([]byte, abi.RecvWQESize), uint32(4), uint32(3))
	slot := make([]byte, 512)
	if err := encodeSend(slot, 1, &ring.SendWR{Opcode: abi.WRRDMAWrite, SGE: []ring.SGE{{Addr: 0x7f00_0000_1000, Length: 8}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(slot, make([]byte, 64), uint32(6), uint32(2))
	f.Fuzz(func(t *testing.T, send, recv []byte, sendIndex, recvIndex uint32) {
		d := victim(t)
		defer d.Close()
		for i := range 4 {
			copy(d.qp.sprod.Slot(i), send)
			copy(d.qp.rprod.Slot(i), recv)
		}
		putIndex(d.qp.sq, abi.QueueBufProducerIndex, sendIndex)
		putIndex(d.qp.rq, abi.QueueBufProducerIndex, recvIndex)
		_ = d.qp.qp.Doorbell()
		d.mu.Lock()
		for {
			wr := engine.ReceiveWR{SGE: make([]mem.SGE, 0, 2)}
			if !d.qp.qp.NextReceive(&wr) {
				break
			}
		}
		d.mu.Unlock()
		sane(t, d)
	})
}

// sane: the device still does what it shall.
func sane(t *testing.T, d *testDevice) {
	require.LessOrEqual(t, d.qp.qp.State(), abi.QPSErr)
	require.NoError(t, d.qp.qp.Destroy())
	q := newQP(t, d.Device, d.pd, qpOptions{})
	q.toInit(defaults())
	q.postRecv(1)
	q.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
	q.recv.waitStatus(1, abi.WCWRFlushErr)
	require.NoError(t, d.mem.mr.Dereg())
}
