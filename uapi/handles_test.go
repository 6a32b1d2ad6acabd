package uapi_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// callsOn makes every call that takes a handle and returns their errors.
func callsOn(d *uapi.Device, qp uapi.QP, mr uapi.MR, cq uapi.CQ, mw uapi.MW) map[string]error {
	ctx := context.Background()
	errs := make(map[string]error)
	note := func(name string) func(_ any, err error) {
		return func(_ any, err error) { errs[name] = err }
	}
	wc := make([]uapi.WC, 1)
	errs["DeregMR"] = d.DeregMR(mr)
	errs["DestroyQP"] = d.DestroyQP(qp)
	errs["DestroyCQ"] = d.DestroyCQ(cq)
	errs["ResizeCQ"] = d.ResizeCQ(cq, 8)
	errs["ReRegMR"] = d.ReRegMR(mr, nil, 0)
	errs["DestroyMW"] = d.DestroyMW(mw)
	note("CreateMW")(d.CreateMW(qp))
	note("NextRegion")(d.NextRegion(mw, uapi.SGE{MR: mr, Length: 8}, uapi.AccessRemoteRead))
	errs["Disconnect"] = d.Disconnect(qp)
	errs["ConnectQP"] = d.ConnectQP(qp, uapi.Endpoint{})
	note("PostWrite")(d.PostWrite(qp, mr, 0, 0, 0, 0))
	note("Write")(d.Write(qp, uapi.SGE{MR: mr}, uapi.Region{Length: 8}))
	note("PostRead")(d.PostRead(qp, mr, 0, 0, 0, 0))
	note("PostSend")(d.PostSend(qp, mr, 0))
	note("PostSendImm")(d.PostSendImm(qp, mr, 0, 0))
	note("PostRecv")(d.PostRecv(qp, mr, 0, 0))
	note("FetchAdd")(d.FetchAdd(qp, uapi.SGE{MR: mr, Length: 8}, uapi.Region{Length: 8}, 0))
	note("Post")(d.Post(qp, []uapi.WR{{Op: uapi.OpSend}}))
	note("PollCQ")(d.PollCQ(qp, wc))
	note("WaitCQ")(d.WaitCQ(ctx, qp, wc))
	note("PollQueue")(d.PollQueue(cq, wc))
	note("WaitQueue")(d.WaitQueue(ctx, cq, wc))
	for wc, err := range d.Completions(ctx, cq) {
		note("Completions")(wc, err)
	}
	note("LocalEndpoint")(d.LocalEndpoint(qp))
	note("QueryMR")(d.QueryMR(mr))
	note("QueryQP")(d.QueryQP(qp))
	return errs
}

// Handles of another Device mean nothing, though both have opened one device.
func TestForeignHandles(t *testing.T) {
	t.Parallel()
	device := simNetwork() + "&mtu=1024"
	a := openDevice(t, "sim:10.0.0.1?"+device[len("sim?"):])
	b := openDevice(t, "sim:10.0.0.1?"+device[len("sim?"):])
	ia := must.Get(a.QueryDevice())(t)
	ib := must.Get(b.QueryDevice())(t)
	require.Equal(t, ia.NodeGUID, ib.NodeGUID, "one device")
	mr, _ := mustMR(t, a, make([]byte, 8), 0)
	cq := must.Get(a.CreateCQ(1))(t)
	t.Cleanup(func() { require.NoError(t, a.DestroyCQ(cq)) })
	qp := mustQP(t, a, uapi.QPConfig{})
	mw := must.Get(a.CreateMW(qp))(t)
	for name, err := range callsOn(b, qp, mr, cq, mw) {
		require.ErrorIs(t, err, syscall.EBADF, name)
	}
	require.Len(t, a.OpenHandles(), 4)
	// Two that opened one device connect to each other like any others.
	qb := mustQP(t, b, uapi.QPConfig{SendDepth: 1})
	connectPair(t, a, qp, b, qb)
}

// handles makes an object of each kind on a device.
func handles(t *testing.T) (a *uapi.Device, mr uapi.MR, cq uapi.CQ, qp uapi.QP, mw uapi.MW) {
	a, _ = uapitest.Pair(t, "")
	mr = must.Get(a.RegMR(make([]byte, 8), 0))(t)
	cq = must.Get(a.CreateCQ(1))(t)
	qp = must.Get(a.CreateQP(1, 1))(t)
	mw = must.Get(a.CreateMW(qp))(t)
	return a, mr, cq, qp, mw
}

func TestStaleHandles(t *testing.T) {
	t.Parallel()
	a, mr, cq, qp, mw := handles(t)
	require.NoError(t, a.DestroyQP(qp))
	require.NoError(t, a.DestroyCQ(cq))
	require.NoError(t, a.DeregMR(mr))
	for name, err := range callsOn(a, qp, mr, cq, mw) {
		require.ErrorIs(t, err, syscall.EBADF, name)
	}
}

func TestClosedDevice(t *testing.T) {
	t.Parallel()
	a, mr, cq, qp, mw := handles(t)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close(), "idempotent")
	errs := callsOn(a, qp, mr, cq, mw)
	_, errs["RegMR"] = a.RegMR(make([]byte, 1), 0)
	_, errs["CreateQP"] = a.CreateQP(1, 1)
	_, errs["CreateCQ"] = a.CreateCQ(1)
	_, errs["CreatePD"] = a.CreatePD()
	errs["DestroyPD"] = a.DestroyPD(1)
	_, errs["QueryDevice"] = a.QueryDevice()
	_, errs["Counters"] = a.Counters()
	_, errs["Stats"] = a.Stats()
	for name, err := range errs {
		require.ErrorIs(t, err, syscall.EBADF, name)
		require.ErrorIs(t, err, net.ErrClosed, name)
	}
}

// Of many goroutines that destroy the same object one succeeds.
func TestDestroyRaces(t *testing.T) {
	t.Parallel()
	a, _ := uapitest.Pair(t, "")
	for range 20 {
		mr := must.Get(a.RegMR(make([]byte, 8), 0))(t)
		qp := must.Get(a.CreateQP(1, 1))(t)
		cq := must.Get(a.CreateCQ(1))(t)
		mw := must.Get(a.CreateMW(qp))(t)
		for _, destroy := range []func() error{
			func() error { return a.DestroyMW(mw) },
			func() error { return a.DeregMR(mr) },
			func() error { return a.DestroyQP(qp) },
			func() error { return a.DestroyCQ(cq) },
		} {
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() { errs[i] = destroy() })
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else {
					require.ErrorIs(t, err, syscall.EBADF)
				}
			}
			require.Equal(t, 1, won)
		}
	}
}

// Calls that race with Close end in success or EBADF; nothing hangs or panics.
func TestCloseRacesWithEverything(t *testing.T) {
	t.Parallel()
	for range 3 {
		a, b := uapitest.Pair(t, "")
		x, _ := uapitest.Connect(t, a, b)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 4 {
			wg.Go(func() {
				<-start
				wc := make([]uapi.WC, 4)
				for {
					if _, err := x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 100); err != nil && !errors.Is(err, syscall.ENOMEM) {
						if !errors.Is(err, syscall.EBADF) {
							t.Error(err)
						}
						return
					}
					if _, err := x.PollCQ(x.QP, wc); err != nil && !errors.Is(err, syscall.EBADF) {
						t.Error(err)
					}
					if mr, err := a.RegMR(make([]byte, 10), 0); err == nil {
						a.DeregMR(mr)
					}
					if qp, err := a.CreateQP(1, 1); err == nil {
						a.DestroyQP(qp)
					}
				}
			})
		}
		wg.Go(func() {
			<-start
			for range 5 {
				x.Counters()
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
		close(start)
		wg.Wait()
	}
}
