package uapi

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// causeRig is a connection between two machines, and a region.
type causeRig struct {
	joined
	a, b *cmHost
	mr   MR // of a
}

func causes(t *testing.T, interval time.Duration, f func(t *testing.T, r *causeRig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &causeRig{}
		r.a, r.b = twoHosts(t)
		l := must.Get(r.b.Listen(":0", ListenConfig{KeepAlive: interval}))(t)
		r.joined = join(t, r.a.Device, r.b.Device, l, DialConfig{KeepAlive: interval, QPConfig: QPConfig{SendDepth: 2, RecvDepth: 2}})
		r.mr = must.Get(r.a.RegMR(make([]byte, 64), AccessLocalWrite))(t)
		f(t, r)
		require.NoError(t, r.a.DestroyQP(r.qa))
		require.NoError(t, r.a.DeregMR(r.mr))
		_ = l.Close() // whose process may have ended
		_ = r.b.Close()
	})
}

// wrongKey posts a write that the peer refuses, and a receive that is flushed
// then.
func (r *causeRig) wrongKey(t *testing.T) WRID {
	t.Helper()
	must.Get(r.a.PostRecv(r.qa, r.mr, 0, 8))(t)
	return must.Get(r.a.PostWrite(r.qa, r.mr, 0, 4096, 12345, 8))(t)
}

// ownFault is the Cause of that write.
func (r *causeRig) ownFault(t *testing.T, id WRID) {
	t.Helper()
	err := must.Get(r.a.Cause(r.qa))(t)
	require.ErrorIs(t, err, ErrQPFailed)
	require.NotErrorIs(t, err, ErrPeerSilent)
	require.Equal(t, WCRemAccessErr, StatusOf(err))
	require.ErrorIs(t, err, syscall.EIO)
	var failed *WCError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, []any{id, r.qa, WCOpWrite}, []any{failed.WC.WRID, failed.WC.QP, failed.WC.Opcode})
}

// over reports whether Done is closed.
func over(d *Device, qp QP) bool {
	select {
	case <-d.Done(qp):
		return true
	default:
		return false
	}
}

// TestOwnFailureEndsAtOnce: a completion with an error that the program takes,
// by whichever call, ends the connection before the call returns, with that
// error, after keepalives and without any.
func TestOwnFailureEndsAtOnce(t *testing.T) {
	for _, interval := range []time.Duration{0, -1} {
		for name, take := range map[string]func(r *causeRig, cq CQ, wc []WC) (int, error){
			"WaitCQ":    func(r *causeRig, _ CQ, wc []WC) (int, error) { return r.a.WaitCQ(context.Background(), r.qa, wc) },
			"WaitQueue": func(r *causeRig, cq CQ, wc []WC) (int, error) { return r.a.WaitQueue(context.Background(), cq, wc) },
			"PollCQ":    func(r *causeRig, _ CQ, wc []WC) (int, error) { synctest.Wait(); return r.a.PollCQ(r.qa, wc) },
			"PollQueue": func(r *causeRig, cq CQ, wc []WC) (int, error) { synctest.Wait(); return r.a.PollQueue(cq, wc) },
		} {
			t.Run(name+" "+interval.String(), func(t *testing.T) {
				causes(t, interval, func(t *testing.T, r *causeRig) {
					time.Sleep(DefaultKeepAlive + time.Second) // a keepalive was answered
					id := r.wrongKey(t)
					info := must.Get(r.a.QueryQP(r.qa))(t)
					start, wc := time.Now(), make([]WC, 2)
					n := must.Get(take(r, info.SendCQ, wc))(t)
					require.Positive(t, n)
					require.Equal(t, WCRemAccessErr, wc[0].Status)
					require.True(t, over(r.a.Device, r.qa))
					require.Less(t, time.Since(start), time.Second)
					r.ownFault(t, id)
					<-r.b.Done(r.qb)
					require.Less(t, time.Since(start), time.Second, "the peer is told")
				})
			})
		}
	}
}

// TestOwnFailureThatNobodyPolls: a keepalive that looks finds the completion,
// which stays for the program.
func TestOwnFailureThatNobodyPolls(t *testing.T) {
	causes(t, 0, func(t *testing.T, r *causeRig) {
		time.Sleep(DefaultKeepAlive + time.Second)
		id := r.wrongKey(t)
		<-r.a.Done(r.qa)
		r.ownFault(t, id)
		wc := make([]WC, 4)
		n := must.Get(r.a.PollCQ(r.qa, wc))(t)
		require.Equal(t, 2, n)
		require.Equal(t, WCRemAccessErr, wc[0].Status)
		require.Equal(t, WCWRFlushErr, wc[1].Status)
		require.NotEqual(t, WCRemAccessErr, StatusOf(wc[1].Err()), "a flushed request is not the one that failed")
	})
}

// TestOwnFailureOnAnotherQueue: the reason is found in the send queue's
// completions when the first that the program takes is of a receive that was
// flushed. Calls that name a queue pair are for those with one queue.
func TestOwnFailureOnAnotherQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoDevices(t, "")
		l := listening(t, b, ListenConfig{})
		var cq [2]CQ
		for i := range cq {
			cq[i] = must.Get(a.CreateCQ(4))(t)
		}
		j := join(t, a, b, l, DialConfig{KeepAlive: None, QPConfig: QPConfig{SendCQ: cq[0], RecvCQ: cq[1], SendDepth: 3, RecvDepth: 3}})
		r := &causeRig{joined: j, a: &cmHost{Device: a}}
		r.mr = must.Get(a.RegMR(make([]byte, 64), AccessLocalWrite))(t)
		id := r.wrongKey(t)
		var wc [1]WC
		_, err := a.PollCQ(j.qa, wc[:])
		require.ErrorIs(t, err, syscall.EINVAL)
		_, err = a.WaitCQ(t.Context(), j.qa, wc[:])
		require.ErrorIs(t, err, syscall.EINVAL)
		must.Get(a.WaitQueue(t.Context(), cq[1], wc[:]))(t)
		require.Equal(t, WCWRFlushErr, wc[0].Status)
		require.True(t, over(a, j.qa))
		r.ownFault(t, id)
		j.leave(t)
		require.NoError(t, a.DeregMR(r.mr))
		require.NoError(t, a.DestroyCQ(cq[0]))
		require.NoError(t, a.DestroyCQ(cq[1]))
	})
}

// TestFlushedSaysWhy: a request that the end of a connection flushes tells a
// waiting program that it was flushed, and which end it was.
func TestFlushedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		end func(r *causeRig) error
		why error
	}{
		"the peer disconnects":    {func(r *causeRig) error { return r.b.Disconnect(r.qb) }, ErrPeerDisconnected},
		"the peer's process ends": {func(r *causeRig) error { return r.b.machine.Kill(r.b.proc) }, ErrPeerDisconnected},
		"the peer falls silent":   {func(r *causeRig) error { r.b.off.Store(true); return nil }, ErrPeerSilent},
		"this side disconnects":   {func(r *causeRig) error { return r.a.Disconnect(r.qa) }, ErrDisconnected},
	} {
		t.Run(name, func(t *testing.T) {
			causes(t, 0, func(t *testing.T, r *causeRig) {
				for range 2 {
					must.Get(r.a.PostRecv(r.qa, r.mr, 0, 8))(t)
				}
				type result struct {
					list []WC
					err  error
				}
				flushed := make(chan result)
				go func() {
					wc := make([]WC, 2)
					_, err := r.a.WaitCQ(t.Context(), r.qa, wc[:1])
					if err == nil {
						_, err = r.a.WaitCQ(t.Context(), r.qa, wc[1:])
					}
					flushed <- result{wc, err}
				}()
				synctest.Wait() // it waits
				start := time.Now()
				require.NoError(t, c.end(r))
				got := <-flushed
				require.NoError(t, got.err)
				require.LessOrEqual(t, time.Since(start), keepAliveBound(DefaultKeepAlive))
				for _, wc := range got.list {
					require.Equal(t, WCWRFlushErr, wc.Status)
					err := wc.Err()
					require.ErrorIs(t, err, c.why)
					require.Equal(t, WCWRFlushErr, StatusOf(err))
					var failed *WCError
					require.ErrorAs(t, err, &failed)
					require.Equal(t, c.why, must.Get(r.a.Cause(r.qa))(t))
					require.ErrorContains(t, err, c.why.Error())
					require.Contains(t, wc.String(), c.why.Error())
				}
				require.NoError(t, r.a.Disconnect(r.qa), "again it does nothing")
			})
		})
	}
}

// TestFlushedWithoutConnection: on a queue pair that was not connected by
// address a flushed completion names itself.
func TestFlushedWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoDevices(t, "")
		qp := must.Get(a.CreateQP(1, 1))(t)
		e := must.Get(a.LocalEndpoint(qp))(t)
		require.NoError(t, a.ConnectQP(qp, e))
		mr := must.Get(a.RegMR(make([]byte, 8), AccessLocalWrite))(t)
		must.Get(a.PostRecv(qp, mr, 0, 8))(t)
		require.NoError(t, a.Disconnect(qp))
		var failed *WCError
		require.ErrorAs(t, one(t, a, qp).Err(), &failed)
		require.NoError(t, failed.Cause)
		require.Equal(t, WCWRFlushErr, StatusOf(failed))
		require.NoError(t, a.DestroyQP(qp))
		require.NoError(t, a.DeregMR(mr))
	})
}
