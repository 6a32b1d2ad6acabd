package virtual

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/mem"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// traffic is a world in which one node keeps the send queues of its queue pairs
// full of messages of one kind to another node.
type traffic struct {
	w       *World
	pairs   []*trafficPair
	of      map[*QP]*trafficPair
	wr      engine.SendWR
	recv    engine.ReceiveWR
	arrived func() // is called after each packet; may be nil

	bytes  int   // completed
	failed error // a completion's status
}

// trafficPair is a connected pair; a sends.
type trafficPair struct{ a, b *QP }

const (
	trafficMessage = 64 << 10
	trafficMTU     = 4096
	trafficDepth   = 32
)

var trafficOpcodes = map[string]abi.WROpcode{"WRITE": abi.WRRDMAWrite, "SEND": abi.WRSend, "READ": abi.WRRDMARead}

// newTraffic makes a world with so many pairs, which start at time 0.
func newTraffic(t *testing.T, o Options, pairs int, op abi.WROpcode, timeout wire.AckTimeout) *traffic {
	l := &traffic{of: map[*QP]*trafficPair{}}
	o.Watch = l
	l.w = New(o)
	var node [2]*Node
	var region [2]*mem.Region
	for i := range node {
		n := l.w.AddNode(string(rune('a'+i)), netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
		r, err := n.Regions.Register(1, make([]byte, trafficMessage), 0x10000, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead)
		require.NoError(t, err)
		node[i], region[i] = n, r
	}
	l.wr = engine.SendWR{Opcode: op, RemoteAddr: 0x10000, RKey: region[1].Key(),
		SGE: []mem.SGE{{Addr: 0x10000, Length: trafficMessage, LKey: region[0].Key()}}}
	l.recv = engine.ReceiveWR{SGE: []mem.SGE{{Addr: 0x10000, Length: trafficMessage, LKey: region[1].Key()}}}
	for i := range pairs {
		l.connect(t, node, wire.QPN(17+2*i), timeout)
	}
	l.w.At(0, func() {
		for range trafficDepth {
			for _, p := range l.pairs {
				l.post(p)
			}
		}
	})
	return l
}

// connect adds a pair, whose queue pairs have the numbers n and n+1.
func (l *traffic) connect(t *testing.T, node [2]*Node, n wire.QPN, timeout wire.AckTimeout) {
	p := &trafficPair{}
	for i, q := range []**QP{&p.a, &p.b} {
		*q = node[i].AddQP(engine.Config{QPN: n + wire.QPN(i), PD: 1, SigAll: true, SendDepth: trafficDepth, MaxSendSGE: 1, MaxRecvSGE: 1})
	}
	attr := engine.Attr{
		Access: abi.AccessRemoteWrite | abi.AccessRemoteRead, PathMTU: abi.MTU4096, MaxRdAtomic: 16, MaxDestRdAtomic: 16,
		MinRNRTimer: 12, Timeout: timeout, RetryCnt: 6, RNRRetry: 7,
	}
	attr.Peer, attr.DestQPN = p.b.At(), p.b.Num
	require.NoError(t, p.a.Connect(attr))
	attr.Peer, attr.DestQPN = p.a.At(), p.a.Num
	require.NoError(t, p.b.Connect(attr))
	l.pairs, l.of[p.a] = append(l.pairs, p), p
}

func (l *traffic) post(p *trafficPair) {
	p.b.PostReceive(l.recv)
	if err := p.a.Post(&l.wr); err != nil {
		l.w.Fail(err)
	}
}

// goodput runs for a time and returns the bytes a second that completed in it.
func (l *traffic) goodput(t *testing.T, d engine.Duration) float64 {
	before := l.bytes
	require.NoError(t, l.w.Run(l.w.Now()+engine.Time(d), 10_000_000))
	require.NoError(t, l.failed)
	return float64(l.bytes-before) / (float64(d) / 1e9)
}

// counters are those of all sending queue pairs.
func (l *traffic) counters() (c engine.Counters) {
	for _, p := range l.pairs {
		c.Add(p.a.Counters())
	}
	return c
}

// repeated is how many packets were sent again.
func (l *traffic) repeated() uint64 { return l.counters().RetransmittedPkts }

func (*traffic) Sent(*Flight)                       {}
func (*traffic) Dropped(*Flight, Fault)             {}
func (*traffic) Arrives(*Flight, *QP, *wire.Packet) {}

func (l *traffic) Arrived(*Flight, *QP, *wire.Packet) {
	if l.arrived != nil {
		l.arrived()
	}
}

func (l *traffic) Completed(q *QP, c *engine.Completion) {
	p := l.of[q]
	switch {
	case c.Status != abi.WCSuccess:
		l.failed = fmt.Errorf("completion %v", c.Status)
	case p != nil:
		l.bytes += trafficMessage
		l.w.At(l.w.Now(), func() { l.post(p) })
	}
}
