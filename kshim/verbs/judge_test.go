package verbs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// TestJudge: of a kernel that carries everything out, a completion that the
// judge fails takes its queue pair to ERR, there too; what was done already
// behind it is flushed, events reach the watchers, and a reset forgets all.
func TestJudge(t *testing.T) {
	b := newBed(t, eight)
	asked := 0
	b.c.SetJudge(func(op abi.WCOpcode) (v kshim.Verdict) {
		require.Equal(t, abi.WCSend, op)
		switch asked++; asked {
		case 2:
			v = kshim.Verdict{Status: abi.WCRemOpErr, Error: true, Events: []abi.EventType{abi.EventQPFatal, abi.EventPortErr}}
		case 4:
			v.Events = []abi.EventType{abi.EventCQErr}
		}
		return v
	})
	var events []Event
	defer b.c.Watch(func(e Event) { events = append(events, e) })()
	b.connect()
	b.do(func() { b.dev.Bell = (*kerneltest.QP).Succeed })
	must.Get(b.qp.PostRecv(recvs(100)))(t)
	must.Get(b.qp.Post(sends(sig, 1, 2, 3)))(t)
	wc := func(id uint64, status abi.WCStatus) WC {
		return WC{ID: id, Status: status, Opcode: abi.WCSend, QPN: b.qp.Num()}
	}
	require.Equal(t, []WC{wc(1, abi.WCSuccess), wc(2, abi.WCRemOpErr), wc(3, abi.WCWRFlushErr)}, pollTwice(t, b.scq))
	require.Equal(t, abi.QPSErr, b.kernel.State())
	require.Equal(t, abi.QPSErr, b.qp.State())
	require.Equal(t, Failure{WC: wc(2, abi.WCRemOpErr)}, b.qp.Failure())
	require.Equal(t, []uint64{100}, ids(poll(t, b.rcq)), "the kernel flushes receives")
	require.Equal(t, []Event{{Type: abi.EventQPFatal, QP: b.qp}, {Type: abi.EventPortErr, Port: 1}}, events)

	require.NoError(t, move(b.qp, abi.QPSReset))
	b.connect()
	must.Get(b.qp.Post(sends(sig, 4, 5)))(t)
	require.Equal(t, []WC{wc(4, abi.WCSuccess), wc(5, abi.WCSuccess)}, poll(t, b.scq))
	require.Equal(t, Event{Type: abi.EventCQErr, CQ: b.scq}, events[2])
	must.Fail(b.scq.Poll(make([]WC, 1)))(t, errOverrun)
	require.Equal(t, 4, asked)
}
