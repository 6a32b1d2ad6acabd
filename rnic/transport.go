package rnic

import (
	"net/netip"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// transport is a queue pair's protocol, as the device drives it.
type transport interface {
	State() abi.QPState
	Attr() engine.Attr
	Counters() *engine.Counters
	Modify(now engine.Time, to abi.QPState, attr *engine.Attr, mask abi.QPAttrMask) error
	Post(now engine.Time, wr *engine.SendWR) error
	Receive(now engine.Time, from netip.Addr, p *wire.Packet)
	Genuine() bool
	Transmit(now engine.Time, b *engine.Batch) (more bool)
	NextTimeout() (engine.Time, bool)
	HandleTimeout(now engine.Time)
	HasCompletions() bool
	Completions(buf []engine.Completion) int
	TakeEvent() (abi.EventType, bool)
	Drained() bool
	HoldsAck() bool
	Awaits() bool
	Outstanding() int
	Gauges() engine.Gauges
	Unready(now engine.Time) engine.Duration
	ReleaseAck()
	Ping() bool
}

var (
	_ transport = (*engine.QP)(nil)
	_ transport = (*engine.Datagrams)(nil)
	_ transport = (*engine.Unreliable)(nil)
)

// newTransport makes the protocol of a queue pair type.
func (d *Device) newTransport(typ abi.QPType, c engine.Config) transport {
	switch typ {
	case abi.QPTUD:
		return engine.NewDatagrams(engine.DatagramConfig{Config: c, MTU: d.mtu.Bytes(), Local: d.caps.Local.Addr()})
	case abi.QPTUC:
		return engine.NewUnreliable(c)
	}
	return engine.New(c)
}

// address resolves where a work request that was just decoded goes, if it is a
// datagram: its address handle is looked up when the doorbell has rung, and may
// go after that (rxe_av.c:rxe_get_av). Without one it has no destination and
// fails. Preconditions: d.mu is held.
func (q *QP) address(wr *engine.SendWR) {
	if _, ok := q.engine.(*engine.Datagrams); !ok || wr.Err != nil {
		return
	}
	w := &q.d.wqe.sqe.WR
	if v := q.d.ahs.find(w.AHNum, q.pd); v != nil {
		wr.To = engine.Destination{Peer: v.peer, QPN: wire.QPN(w.RemoteQPN) & wire.MulticastQPN, QKey: w.RemoteQKey}
	}
}
