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

// traffic is a world in which nodes keep the send queues of their queue pairs
// full of messages of one kind to another node.
type traffic struct {
	Unwatched
	w       *World
	op      abi.WROpcode
	mtu     abi.MTU
	timeout wire.AckTimeout
	to      *Node
	region  *mem.Region // of to
	pairs   []*trafficPair
	of      map[*QP]*trafficPair
	recv    engine.ReceiveWR
	arrived func() // is called after each packet; may be nil

	bytes  int   // completed
	failed error // a completion's status
}

// trafficPair is a connected pair; a sends.
type trafficPair struct {
	a, b  *QP
	wr    engine.SendWR
	bytes int // completed
}

const (
	trafficMessage = 64 << 10
	trafficMTU     = 4096
	trafficDepth   = 72
	trafficAccess  = abi.AccessLocalWrite | abi.AccessRemoteWrite | abi.AccessRemoteRead
)

var trafficOpcodes = map[string]abi.WROpcode{"WRITE": abi.WRRDMAWrite, "SEND": abi.WRSend, "READ": abi.WRRDMARead}

// newReceiver makes a world with the node to which the traffic goes.
func newReceiver(t *testing.T, o Options, op abi.WROpcode, mtu abi.MTU, timeout wire.AckTimeout) *traffic {
	l := &traffic{op: op, mtu: mtu, timeout: timeout, of: map[*QP]*trafficPair{}}
	o.Watch = l
	l.w = New(o)
	l.to, l.region = l.addNode(t)
	l.recv = engine.ReceiveWR{SGE: []mem.SGE{{Addr: 0x10000, Length: trafficMessage, LKey: l.region.Key()}}}
	return l
}

func (l *traffic) addNode(t *testing.T) (*Node, *mem.Region) {
	i := len(l.w.nodes)
	n := l.w.AddNode(string(rune('a'+i)), netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
	r, err := n.Regions.Register(1, mem.Near(make([]byte, trafficMessage)), 0x10000, trafficAccess)
	require.NoError(t, err)
	return n, r
}

// addSender adds a node whose pairs start at a time.
func (l *traffic) addSender(t *testing.T, at engine.Time, pairs int) {
	n, r := l.addNode(t)
	begun := len(l.pairs)
	for range pairs {
		p := l.connect(t, n)
		p.wr = engine.SendWR{Opcode: l.op, RemoteAddr: 0x10000, RKey: l.region.Key(),
			SGE: []mem.SGE{{Addr: 0x10000, Length: trafficMessage, LKey: r.Key()}}}
	}
	mine := l.pairs[begun:]
	l.w.At(at, func() {
		for range trafficDepth {
			for _, p := range mine {
				l.post(p)
			}
		}
	})
}

// connect adds a pair between a node and the receiver.
func (l *traffic) connect(t *testing.T, from *Node) *trafficPair {
	p := &trafficPair{}
	n := wire.QPN(17 + 2*len(l.pairs))
	for i, q := range []**QP{&p.a, &p.b} {
		node := from
		if i == 1 {
			node = l.to
		}
		*q = node.AddQP(engine.Config{QPN: n + wire.QPN(i), PD: 1, SigAll: true, SendDepth: trafficDepth, MaxSendSGE: 1, MaxRecvSGE: 1})
	}
	attr := engine.Attr{
		Access: abi.AccessRemoteWrite | abi.AccessRemoteRead, PathMTU: l.mtu, MaxRdAtomic: engine.MaxRdAtomic, MaxDestRdAtomic: engine.MaxRdAtomic,
		MinRNRTimer: 12, Timeout: l.timeout, RetryCnt: 6, RNRRetry: 7,
	}
	attr.Peer, attr.DestQPN = p.b.At(), p.b.Num
	require.NoError(t, p.a.Connect(attr))
	attr.Peer, attr.DestQPN = p.a.At(), p.a.Num
	require.NoError(t, p.b.Connect(attr))
	l.pairs, l.of[p.a] = append(l.pairs, p), p
	return p
}

func (l *traffic) post(p *trafficPair) {
	p.b.PostReceive(l.recv)
	if err := p.a.Post(&p.wr); err != nil {
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
		p.bytes += trafficMessage
		l.w.At(l.w.Now(), func() { l.post(p) })
	}
}

// fairness is Jain's index of what the sending nodes got: 1 when all got the
// same, 1/n when one got all.
func (l *traffic) fairness() float64 {
	got := map[*Node]float64{}
	for _, p := range l.pairs {
		got[p.a.Node] += float64(p.bytes)
	}
	sum, squares := 0.0, 0.0
	for _, x := range got {
		sum, squares = sum+x, squares+x*x
	}
	return sum * sum / (float64(len(got)) * max(squares, 1))
}
