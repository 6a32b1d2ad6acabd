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

// longPath is a world in which a keeps a send queue full of messages of one
// kind to b, on a path without loss.
type longPath struct {
	w    *World
	a, b *QP
	wr   engine.SendWR
	recv engine.ReceiveWR

	bytes   int    // completed
	failed  error  // a completion's status
	sampled bool   // the round trip was measured, and
	repeats uint64 // so many packets had been sent again before
}

const (
	longMessage = 64 << 10
	longWindow  = 1 << 20 // rnic/engine's MaxWindow
	longMTU     = 4096
	longPackets = longWindow / (longMTU + 256) // that a window holds
)

func newLongPath(t *testing.T, rtt engine.Duration, op abi.WROpcode, timeout wire.AckTimeout) *longPath {
	l := &longPath{}
	l.w = New(Options{Latency: rtt / 2, Rate: 20e9, Watch: l})
	var region [2]*mem.Region
	for i, q := range []**QP{&l.a, &l.b} {
		n := l.w.AddNode(string(rune('a'+i)), netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}))
		r, err := n.Regions.Register(1, make([]byte, longMessage), 0x10000, abi.AccessLocalWrite|abi.AccessRemoteWrite|abi.AccessRemoteRead)
		require.NoError(t, err)
		region[i] = r
		*q = n.AddQP(engine.Config{QPN: wire.QPN(17 + i), PD: 1, SigAll: true, SendDepth: 32, MaxSendSGE: 1, MaxRecvSGE: 1})
	}
	attr := engine.Attr{
		Access: abi.AccessRemoteWrite | abi.AccessRemoteRead, PathMTU: abi.MTU4096, MaxRdAtomic: 16, MaxDestRdAtomic: 16,
		MinRNRTimer: 12, Timeout: timeout, RetryCnt: 6, RNRRetry: 7,
	}
	attr.Peer, attr.DestQPN = l.b.At(), l.b.Num
	require.NoError(t, l.a.Connect(attr))
	attr.Peer, attr.DestQPN = l.a.At(), l.a.Num
	require.NoError(t, l.b.Connect(attr))
	l.wr = engine.SendWR{Opcode: op, RemoteAddr: 0x10000, RKey: region[1].Key(),
		SGE: []mem.SGE{{Addr: 0x10000, Length: longMessage, LKey: region[0].Key()}}}
	l.recv = engine.ReceiveWR{SGE: []mem.SGE{{Addr: 0x10000, Length: longMessage, LKey: region[1].Key()}}}
	l.w.At(0, func() {
		for range 32 {
			l.post()
		}
	})
	return l
}

func (l *longPath) post() {
	l.b.PostReceive(l.recv)
	if err := l.a.Post(&l.wr); err != nil {
		l.w.Fail(err)
	}
}

// goodput runs for a time and returns the bytes a second that completed in it.
func (l *longPath) goodput(t *testing.T, d engine.Duration) float64 {
	before := l.bytes
	require.NoError(t, l.w.Run(l.w.Now()+engine.Time(d), 10_000_000))
	require.NoError(t, l.failed)
	return float64(l.bytes-before) / (float64(d) / 1e9)
}

// repeated is how many packets a has sent again.
func (l *longPath) repeated() uint64 { return l.a.Counters().RetransmittedPkts }

func (*longPath) Sent(*Flight)                       {}
func (*longPath) Dropped(*Flight, Fault)             {}
func (*longPath) Arrives(*Flight, *QP, *wire.Packet) {}
func (l *longPath) Arrived(*Flight, *QP, *wire.Packet) {
	if !l.sampled && l.a.Gauges().RTT != 0 {
		l.sampled, l.repeats = true, l.repeated()
	}
}

func (l *longPath) Completed(q *QP, c *engine.Completion) {
	switch {
	case c.Status != abi.WCSuccess:
		l.failed = fmt.Errorf("completion %v", c.Status)
	case q == l.a:
		l.bytes += longMessage
		l.w.At(l.w.Now(), l.post)
	}
}

var longOpcodes = map[string]abi.WROpcode{"WRITE": abi.WRRDMAWrite, "SEND": abi.WRSend, "READ": abi.WRRDMARead}

// TestLongPath: on a path without loss, however long, only the window limits
// the goodput. A wrong first guess of the round trip may cost repeats in the
// beginning; a right estimate costs none. Nothing is sent again after the first
// measurement. Code 16, 268 ms, is uapi's ACK timeout. Code 14, 67 ms, is many
// a program's: less than some of the paths take.
func TestLongPath(t *testing.T) {
	for name, op := range longOpcodes {
		for _, ms := range []engine.Duration{1, 5, 20, 50, 100, 200, 300} {
			for _, v := range []struct {
				name     string
				timeout  wire.AckTimeout
				estimate bool
			}{{"guess", 16, false}, {"estimate", 16, true}, {"short timeout", 14, false}, {"no timeout", 0, false}} {
				if v.timeout == 14 && ms > 100 {
					continue // seven ACK timeouts are 470 ms
				}
				t.Run(fmt.Sprintf("%s/%dms/%s", name, ms, v.name), func(t *testing.T) {
					rtt := ms * engine.Millisecond
					l := newLongPath(t, rtt, op, v.timeout)
					if v.estimate {
						l.a.Estimate(rtt)
					}
					l.goodput(t, 10*rtt) // the window opens
					got := l.goodput(t, 10*rtt)
					want := longPackets * longMTU / (float64(rtt) / 1e9)
					require.InEpsilon(t, want, got, 0.2)
					require.True(t, l.sampled)
					require.LessOrEqual(t, l.repeats, uint64(8), "four timeouts, of two packets each")
					require.Equal(t, l.repeats, l.repeated(), "sent again after the round trip was measured")
					if v.estimate {
						require.Zero(t, l.repeats)
					}
				})
			}
		}
	}
}

// TestPathGrowsLonger: a path that was measured and then takes longer is
// measured again, also when the answer to a packet's first copy comes as soon
// after the last copy as answers came before: after a first timeout of 5 ms the
// last copy leaves at 5, 15 or 35 ms.
func TestPathGrowsLonger(t *testing.T) {
	for name, op := range longOpcodes {
		for _, ms := range []engine.Duration{6, 8, 17, 37, 100} {
			t.Run(fmt.Sprintf("%s/%dms", name, ms), func(t *testing.T) {
				l := newLongPath(t, engine.Millisecond, op, 16)
				l.goodput(t, 20*engine.Millisecond)
				require.Zero(t, l.repeated())
				rtt := ms * engine.Millisecond
				l.w.latency = engine.Time(rtt / 2)
				l.goodput(t, 30*rtt)
				require.NotZero(t, l.repeated())
				require.InEpsilon(t, float64(rtt), float64(l.a.Gauges().RTT), 0.5)
				before := l.repeated()
				l.goodput(t, 30*rtt) // grows by a quarter each round trip
				require.Equal(t, before, l.repeated())
				require.InEpsilon(t, longPackets*longMTU/(float64(rtt)/1e9), l.goodput(t, 10*rtt), 0.2)
			})
		}
	}
}
