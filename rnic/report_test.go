package rnic

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// newSharedQP makes a queue pair with a shared receive queue, and one receive
// of n bytes there.
func newSharedQP(t *testing.T, d *testDevice, n int) *testQP {
	t.Helper()
	u, maps := udata(abi.RXECreateSRQRespSize)
	srq, err := d.CreateSRQ(&driver.SRQInit{PD: d.pd, MaxWR: 4, MaxSGE: 1}, u, newEvents())
	require.NoError(t, err)
	var resp abi.RXECreateSRQResp
	require.NoError(t, resp.Parse(u.Out))
	p := openRing(t, maps, resp.MI).Producer()
	require.NoError(t, ring.EncodeRecv(p.Slot(0), 1, &ring.RecvWR{SGE: []ring.SGE{d.mem.sge(0, n)}}))
	p.Publish(1)
	return newQP(t, d.Device, d.pd, qpOptions{srq: srq})
}

// waitAsyncs waits until n events came, and returns all.
func (q *testQP) waitAsyncs(n int) []abi.EventType {
	q.t.Helper()
	for late := time.After(patience); ; {
		if got := q.asyncs(); len(got) >= n {
			return got
		}
		select {
		case <-q.wake:
		case <-late:
			require.FailNow(q.t, "events are missing", "%v", q.asyncs())
		}
	}
}

// TestLastWQE brings a queue pair with a shared receive queue to ERR in all
// ways. Where a peer is to blame, the events say so first.
func TestLastWQE(t *testing.T) {
	const last = abi.EventQPLastWQEReached
	toErr := func(_, b *testDevice, _, q *testQP) { q.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState) }
	send := func(from *testDevice, q *testQP, n int) {
		q.post(&ring.SendWR{ID: 2, Opcode: abi.WRSend, Flags: abi.SendSignaled, SGE: []ring.SGE{from.mem.sge(0, n)}})
	}
	badKey := func(to, from *testDevice) *ring.SendWR {
		wr := write(from, to, 2, 0, 0, 8)
		wr.RKey ^= 1
		return wr
	}
	for _, way := range []struct {
		name  string
		state abi.QPState // 0 … : connected
		attrs func(*attrs)
		do    func(a, b *testDevice, peer, q *testQP)
		want  []abi.EventType
		recv  abi.WCStatus // of the shared receive; 0: it stays
	}{
		{name: "Modify in RESET", state: abi.QPSReset, do: toErr, want: []abi.EventType{last}},
		{name: "Modify in INIT", state: abi.QPSInit, do: toErr, want: []abi.EventType{last}},
		{name: "Modify in RTS", state: abi.QPSRTS, do: toErr, want: []abi.EventType{last}},
		{name: "local fault", state: abi.QPSRTS, want: []abi.EventType{last}, do: func(a, b *testDevice, _, q *testQP) {
			wr := write(b, a, 2, 0, 0, 8)
			wr.SGE[0].LKey ^= 1
			q.post(wr)
		}},
		{name: "refused by the peer", state: abi.QPSRTS, want: []abi.EventType{last}, do: func(a, b *testDevice, _, q *testQP) {
			q.post(badKey(a, b))
		}},
		{name: "retries exceeded", state: abi.QPSRTS, want: []abi.EventType{last},
			attrs: func(a *attrs) { a.timeout, a.retry = 5, 1 },
			do: func(_, b *testDevice, peer, q *testQP) {
				require.NoError(t, peer.qp.Destroy())
				send(b, q, 8)
			}},
		{name: "RNR retries exceeded", state: abi.QPSRTS, want: []abi.EventType{last},
			attrs: func(a *attrs) { a.rnr = 1 },
			do:    func(_, b *testDevice, _, q *testQP) { send(b, q, 8) }},
		{name: "peer's wrong key", state: abi.QPSRTS, want: []abi.EventType{abi.EventQPAccessErr, last},
			do: func(a, b *testDevice, peer, _ *testQP) { peer.post(badKey(b, a)) }},
		{name: "peer's operation is not permitted", state: abi.QPSRTS, want: []abi.EventType{abi.EventQPReqErr, last},
			attrs: func(a *attrs) { a.access = 0 },
			do:    func(a, b *testDevice, peer, _ *testQP) { peer.post(write(a, b, 2, 0, 0, 8)) }},
		{name: "peer's message is too long", state: abi.QPSRTS, want: []abi.EventType{last}, recv: abi.WCLocLenErr,
			do: func(a, _ *testDevice, peer, _ *testQP) { send(a, peer, 64) }},
		{name: "peer's device has gone", state: abi.QPSRTS, want: []abi.EventType{last}, do: func(_, b *testDevice, peer, q *testQP) {
			require.NoError(t, peer.qp.Destroy())
			send(b, q, 8)
			b.mu.Lock()
			defer b.mu.Unlock()
			q.qp.engine.(*engine.QP).PeerGone()
			b.schedule(q.qp)
			b.serveChanged(1)
		}},
		{name: "link has failed", state: abi.QPSRTS, want: []abi.EventType{last}, do: func(_, b *testDevice, _, _ *testQP) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.fail(errors.New("unplugged"))
			b.serveChanged(0)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			_, ds := neighbours(t, 2, 4096)
			a, b, with := ds[0], ds[1], defaults()
			if way.attrs != nil {
				way.attrs(&with)
			}
			q, peer := newSharedQP(t, b, 16), newQP(t, a.Device, a.pd, qpOptions{})
			switch way.state {
			case abi.QPSInit:
				q.toInit(with)
			case abi.QPSRTS:
				join(peer, q, with)
			}
			way.do(a, b, peer, q)
			require.Equal(t, way.want, q.waitAsyncs(len(way.want)))
			wc, ok := q.recv.poll()
			require.Equal(t, way.recv != 0, ok, "a completion that came before the event")
			if ok {
				require.Equal(t, way.recv, wc.Status)
			}

			if b.check() == nil { // once in each life
				q.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
				require.Equal(t, way.want, q.asyncs())
				q.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
				toErr(a, b, peer, q)
				require.Equal(t, append(way.want, last), q.asyncs())
			}
		})
	}
}

// TestCommunicationEstablished sends to a queue pair in RTR: the first packet
// is an event, of both services that have connections.
func TestCommunicationEstablished(t *testing.T) {
	for _, typ := range []abi.QPType{abi.QPTRC, abi.QPTUC} {
		t.Run(typ.String(), func(t *testing.T) {
			_, ds := neighbours(t, 2, 4096)
			a, b, with := ds[0], ds[1], defaults()
			p, q := newQP(t, a.Device, a.pd, qpOptions{typ: typ}), newQP(t, b.Device, b.pd, qpOptions{typ: typ})
			p.connectTo(q, with)
			q.toInit(with)
			q.modify(abi.ModifyQP{QPState: abi.QPSRTR, Dest: dest(a.Device), PathMTU: with.mtu, RQPSN: p.psn(), MinRNRTimer: with.minRNR,
				MaxDestRdAtomic: with.destRdAtomic, DestQPNum: p.qp.Num()}, rtrMask)
			for id := range uint64(3) {
				p.post(write(a, b, id, 0, 0, 8))
				p.send.waitStatus(id, abi.WCSuccess)
				require.Equal(t, []abi.EventType{abi.EventCommEst}, q.waitAsyncs(1))
			}
			require.Empty(t, p.asyncs(), "in RTS")
		})
	}
}
