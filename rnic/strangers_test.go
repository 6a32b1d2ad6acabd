package rnic

import (
	"bytes"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/guard"
)

// reset brings a queue pair back to where it can be connected again.
func (q *testQP) reset() {
	q.modify(abi.ModifyQP{QPState: abi.QPSReset}, abi.QPMaskState)
	q.sprod, q.rprod = q.sq.Producer(), q.rq.Producer()
}

// admits reports whether b's queue pair can be connected with a's.
func (b *testDevice) admits(a *testDevice) error {
	b.qp.reset()
	b.qp.toInit(defaults())
	at := defaults()
	return b.qp.qp.Modify(&abi.ModifyQP{QPState: abi.QPSRTR, Dest: dest(a.Device), PathMTU: at.mtu, RQPSN: a.qp.psn(),
		MinRNRTimer: at.minRNR, MaxDestRdAtomic: at.destRdAtomic, DestQPNum: a.qp.qp.Num()}, rtrMask)
}

// guess connects the queue pairs of a and b and lets a try a key. The error is
// b's, when it does not want to be connected.
func guess(a, b *testDevice, key uint32) error {
	if err := b.admits(a); err != nil {
		return err
	}
	a.qp.reset()
	a.qp.connectTo(b.qp, defaults())
	wr := write(a, b, 1, 0, 0, 8)
	wr.RKey = key
	a.qp.post(wr)
	a.qp.send.waitStatus(1, abi.WCRemAccessErr)
	return nil
}

// asks lets d send a REQ to b, and reports whether there was an answer within a
// second: that there is no such service.
func (d *testDevice) asks(t *testing.T, b *testDevice) bool {
	before := d.counter(t, "cm_rcvd_rejects")
	require.NoError(t, d.withCM(func(now cm.Time, m *cm.Manager) error {
		_, err := m.Connect(now, &cm.ConnectParams{Peer: b.Addr(), Service: 5, Src: d.Addr(), QPN: 77, MTU: 1})
		return err
	}))
	time.Sleep(200 * time.Millisecond)
	synctest.Wait()
	return d.counter(t, "cm_rcvd_rejects") > before
}

// TestGuesserIsSlowed: after GuessBudget guesses an address gets one new
// connection a second, whether queue pairs are connected by hand or by the
// communication manager; others get theirs, and one line is logged.
func TestGuesserIsSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, ds := neighbours(t, 3, 4096)
		a, b, neighbour := ds[0], ds[1], ds[2]
		var log bytes.Buffer
		b.mu.Lock()
		b.log = slog.New(slog.NewTextHandler(&log, nil))
		b.mu.Unlock()

		key := b.mem.mr.RKey()
		for i := range uint32(guard.GuessBudget) {
			require.NoError(t, guess(a, b, key+1+i))
		}
		require.True(t, a.asks(t, b), "the budget is not exceeded")
		require.NoError(t, guess(a, b, key-1))
		require.ErrorIs(t, guess(a, b, key-2), syscall.EAGAIN)
		require.False(t, a.asks(t, b))
		require.GreaterOrEqual(t, b.counter(t, "refused_guesser"), uint64(2))

		// The neighbour, and the device itself, go on.
		require.True(t, neighbour.asks(t, b))
		require.NoError(t, b.admits(neighbour))
		neighbour.qp.connectTo(b.qp, defaults())
		neighbour.qp.post(write(neighbour, b, 1, 0, 0, 8))
		neighbour.qp.send.waitStatus(1, abi.WCSuccess)
		require.NoError(t, b.admits(b))
		require.True(t, b.asks(t, b))

		// From here on it is one guess a second, however hard it tries.
		start, tried := time.Now(), 0
		for time.Since(start) < 20*time.Second {
			if guess(a, b, key-3-uint32(tried)) == nil {
				tried++
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.InDelta(t, 20, tried, 1)
		require.Equal(t, uint64(guard.GuessBudget+1+tried), b.counter(t, "nak_access_sent"))
		require.Equal(t, make([]byte, 8), b.mem.buf[8:16])

		// A guesser that stops is forgiven.
		time.Sleep((guard.GuessBudget + 1) * time.Duration(guard.GuessPause))
		require.True(t, a.asks(t, b))
		require.NoError(t, b.admits(a))
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "guesses remote keys")
		require.Contains(t, log.String(), "peer="+a.Addr().Addr().String())
	})
}

// A logger that blocks does not make log lines pile up.
func TestWarningsAreBounded(t *testing.T) {
	d := newDevice(t, newFixed("10.0.0.1:4791", 65507), 8, qpOptions{})
	var log bytes.Buffer
	d.mu.Lock()
	d.log = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 * maxWarnings {
		d.warn("again")
	}
	require.Len(t, d.warnings, maxWarnings)
	d.mu.Unlock()
	require.NoError(t, d.Close())
	require.LessOrEqual(t, strings.Count(log.String(), "\n"), maxWarnings)
}
