package rnic

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link/sim"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/must"
)

const testQKey = 0x1234567

// toDatagrams brings a queue pair of that type from RESET to RTS.
func (q *testQP) toDatagrams() {
	q.t.Helper()
	q.modify(abi.ModifyQP{QPState: abi.QPSInit, PortNum: 1, QKey: testQKey}, abi.QPMaskState|abi.QPMaskQKey|abi.QPMaskPkeyIndex|abi.QPMaskPort)
	q.modify(abi.ModifyQP{QPState: abi.QPSRTR}, abi.QPMaskState)
	q.modify(abi.ModifyQP{QPState: abi.QPSRTS, SQPSN: q.psn()}, abi.QPMaskState|abi.QPMaskSQPSN)
}

// datagramDevices are devices on one network with a queue pair for datagrams
// each.
func datagramDevices(t testing.TB, at ...netip.AddrPort) []*testDevice {
	t.Helper()
	net := sim.NewNetwork(sim.Options{})
	var list []*testDevice
	for _, a := range at {
		l := must.Get(net.Attach(a))(t)
		d := newDevice(t, l, 1<<16, qpOptions{typ: abi.QPTUD, inline: 64})
		d.qp.toDatagrams()
		list = append(list, d)
	}
	return list
}

// createAH makes an address handle, and answers its number.
func (d *testDevice) createAH(t testing.TB, attr abi.AHAttr) (driver.AH, uint32) {
	t.Helper()
	u, _ := udata(abi.RXECreateAHRespSize)
	ah := must.Get(d.CreateAH(d.pd, &attr, u))(t)
	var resp abi.RXECreateAHResp
	require.NoError(t, resp.Parse(u.Out))
	return ah, resp.AHNum
}

// handle makes an address handle for a device, and answers its number.
func handle(t testing.TB, from *testDevice, to *testDevice) (driver.AH, uint32) {
	t.Helper()
	v := dest(to.Device)
	return from.createAH(t, v.AHAttr())
}

func datagram(from, to *testDevice, id uint64, ah uint32, off, n int) *ring.SendWR {
	return &ring.SendWR{ID: id, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{from.mem.sge(off, n)},
		AHNum: ah, RemoteQPN: to.qp.qp.Num(), RemoteQKey: testQKey}
}

// Every drop is counted, and hurts no queue pair.
func TestDatagramsDropped(t *testing.T) {
	ds := datagramDevices(t, netip.AddrPort{}, netip.AddrPort{})
	a, b := ds[0], ds[1]
	_, ah := handle(t, a, b)
	for i, c := range []struct {
		counter string
		at      *testDevice
		change  func(wr *ring.SendWR)
	}{
		{"drop_qkey", b, func(wr *ring.SendWR) { wr.RemoteQKey++ }},
		{"drop_qpn", b, func(wr *ring.SendWR) { wr.RemoteQPN ^= 1 << 23 }},
		{"drop_qpn", b, func(wr *ring.SendWR) { wr.RemoteQPN = uint32(wire.MulticastQPN) }},
		{"drop_gsi", b, func(wr *ring.SendWR) { wr.RemoteQPN = uint32(wire.GSIQPN) }},
		{"drop_no_receive", b, func(*ring.SendWR) {}},
		{"drop_too_long", a, func(wr *ring.SendWR) { wr.SGE[0].Length = 4097 }},
	} {
		before := c.at.counter(t, c.counter)
		wr := datagram(a, b, uint64(i), ah, 0, 8)
		c.change(wr)
		a.qp.post(wr)
		a.qp.send.waitStatus(uint64(i), abi.WCSuccess)
		require.Eventually(t, func() bool { return c.at.counter(t, c.counter) == before+1 }, patience, 1e6, c.counter)
	}
	b.qp.postRecv(1, b.mem.sge(0, 100))
	a.qp.post(datagram(a, b, 7, ah, 0, 8))
	require.EqualValues(t, 48, b.qp.recv.waitStatus(1, abi.WCSuccess).ByteLen)
}

// An address handle counts when the bell rings, and only in its domain; without
// one a request fails.
func TestDatagramHandles(t *testing.T) {
	ds := datagramDevices(t, netip.AddrPort{}, netip.AddrPort{})
	a, b := ds[0], ds[1]
	first, ah := handle(t, a, b)
	b.qp.postRecv(1, b.mem.sge(0, 100))
	a.qp.post(datagram(a, b, 1, ah, 0, 8))
	a.qp.send.waitStatus(1, abi.WCSuccess)
	require.NoError(t, first.Destroy())
	b.qp.recv.waitStatus(1, abi.WCSuccess)

	foreign := &testDevice{Device: a.Device}
	foreign.pd = must.Get(a.AllocPD())(t)
	_, other := handle(t, foreign, b)
	for i, num := range []uint32{ah, other, 0, 1 << 31} {
		a.qp.publish(datagram(a, b, 10, num, 0, 8))
		a.qp.post(datagram(a, b, 11, num, 0, 8))
		a.qp.send.waitStatus(10, abi.WCLocQPOpErr)
		a.qp.send.waitStatus(11, abi.WCWRFlushErr)
		require.Equal(t, abi.QPSErr, a.qp.qp.State(), "%d", i)
		a.qp.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
		a.qp.sprod.Reset()
		a.qp.toDatagrams()
	}
	require.EqualValues(t, 4, a.counter(t, "send_err"))
}

// Rings with anything in them: nothing panics or hangs, and the device goes on.
func TestDatagramRingsAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		d := newDevice(t, newFixed("10.0.0.1:4791", 65507), 1<<14, qpOptions{typ: abi.QPTUD})
		d.qp.toDatagrams()
		_, ah := handle(t, d, d)
		for i := range 4 {
			d.qp.postRecv(uint64(i), d.mem.sge(0, 100))
			require.NoError(t, encodeSend(d.qp.sprod.Slot(i), 1, datagram(d, d, 1, ah, 0, 8)))
			for _, slot := range [][]byte{d.qp.sprod.Slot(i), d.qp.rprod.Slot(i)} {
				for range r.IntN(4) {
					slot[r.IntN(len(slot))] = byte(r.Uint32())
				}
			}
		}
		putIndex(d.qp.sq, abi.QueueBufProducerIndex, r.Uint32N(130))
		putIndex(d.qp.rq, abi.QueueBufProducerIndex, r.Uint32N(130))
		_ = d.qp.qp.Doorbell()
		p := wire.Packet{BTH: wire.BTH{Opcode: wire.UDSendOnly, PKey: wire.DefaultPKey, DestQPN: d.qp.qp.num}, DETH: wire.DETH{QKey: testQKey}}
		d.mu.Lock()
		d.qp.qp.engine.Receive(d.now(), netip.MustParseAddr("10.0.0.2"), &p)
		d.schedule(d.qp.qp)
		d.serveChanged(1)
		d.mu.Unlock()
		sane(t, d)
		require.NoError(t, d.Close())
	}
}

// route returns the addresses of a datagram's route header (IBA A17.4.5).
func route(b []byte) (src, dst netip.Addr) {
	if b[0]>>4 == 6 {
		return netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	}
	return netip.AddrFrom4([4]byte(b[32:])), netip.AddrFrom4([4]byte(b[36:]))
}
