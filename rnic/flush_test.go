package rnic

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// programMemory is memory of a program that is not of Go.
type programMemory struct{}

func (programMemory) Alloc(n int) ([]byte, error) { return make([]byte, n), nil }
func (programMemory) Free([]byte)                 {}

// TestReceivesPostedInErrorAreFlushed posts receives in ERR and looks at the
// completion queue, both without a call.
func TestReceivesPostedInErrorAreFlushed(t *testing.T) {
	for _, typ := range []abi.QPType{abi.QPTRC, abi.QPTUC, abi.QPTUD} {
		t.Run(typ.String(), func(t *testing.T) {
			_, ds := neighbours(t, 1, 64)
			d := ds[0]
			q := newQP(t, d.Device, d.pd, qpOptions{typ: typ, memory: programMemory{}})
			q.postRecv(1)
			q.modify(abi.ModifyQP{QPState: abi.QPSErr}, abi.QPMaskState)
			for id := uint64(1); id <= 3; id++ {
				if id > 1 {
					q.postRecv(id)
				}
				wc, ok := q.recv.poll()
				for late := time.Now().Add(patience); !ok && time.Now().Before(late); wc, ok = q.recv.poll() {
					runtime.Gosched()
				}
				require.True(t, ok, "receive %d", id)
				require.Equal(t, []any{id, abi.WCWRFlushErr}, []any{wc.ID, wc.Status})
			}
			q.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
			d.mu.Lock()
			defer d.mu.Unlock()
			require.Zero(t, q.qp.watch.at, "in RESET")
		})
	}
}

// TestLooksAtReceivesBackOff plays the looks at the receive ring of a queue
// pair in ERR.
func TestLooksAtReceivesBackOff(t *testing.T) {
	_, ds := neighbours(t, 1, 64)
	d := ds[0]
	q := newQP(t, d.Device, d.pd, qpOptions{memory: programMemory{}})
	own := newQP(t, d.Device, d.pd, qpOptions{})
	d.mu.Lock()
	defer d.mu.Unlock()
	q.qp.watchReceives(1)
	require.Zero(t, q.qp.watch.at, "not in ERR")
	for _, q := range []*testQP{q, own} {
		require.NoError(t, q.qp.engine.Modify(1, abi.QPSErr, &engine.Attr{}, abi.QPMaskState))
	}
	own.qp.watchReceives(1)
	require.Zero(t, own.qp.watch.at, "a Go program's")

	now, looks := engine.Time(1), 0
	for until := now + engine.Time(engine.Second); now < until; looks++ {
		q.qp.watchReceives(now)
		at, ok := q.qp.nextTimeout()
		require.True(t, ok)
		require.Greater(t, at, now)
		q.qp.watchReceives(at - 1)
		require.Equal(t, at, q.qp.watch.at, "touched meanwhile")
		now = at
	}
	require.Equal(t, 8+3, looks, "in the first second")

	q.qp.engine.Counters().Flushed++
	q.qp.watchReceives(now)
	require.Equal(t, now+engine.Time(lookFirst), q.qp.watch.at, "a receive was flushed")
}
