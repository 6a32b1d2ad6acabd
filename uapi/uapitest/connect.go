package uapitest

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// End is one side of a connection that Connect or Dial made.
type End struct {
	*uapi.Device
	QP  uapi.QP
	MR  uapi.MR
	Buf []byte // MR's memory
	// Local is the region as the peer sees it, Peer is the peer's.
	Local, Peer uapi.Region

	t T
}

// Defaults of Connect.
const (
	Depth = 64       // requests that may be outstanding in each queue
	Size  = 64 << 10 // bytes of each side's buffer
)

// AllAccess allows everything.
const AllAccess = uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead | uapi.AccessRemoteAtomic

// Connect makes a connected queue pair between two devices, which may be the
// same, with a registered buffer on each side that the peer may access in
// every way. They are destroyed at the end of the test.
func Connect(t T, a, b *uapi.Device) (x, y *End) {
	t.Helper()
	return ConnectWith(t, a, b, uapi.QPConfig{SendDepth: Depth, RecvDepth: Depth}, Size)
}

// ConnectWith is Connect with queue pairs as configured, the same on both
// sides, and buffers of that size.
func ConnectWith(t T, a, b *uapi.Device, config uapi.QPConfig, size int) (x, y *End) {
	t.Helper()
	x, y = newEnd(t, a, size), newEnd(t, b, size)
	x.Peer, y.Peer = y.Local, x.Local
	for _, e := range []*End{x, y} {
		qp, err := e.CreateQPWith(config)
		if err != nil {
			t.Fatalf("uapitest: %v", err)
		}
		e.own(qp)
	}
	x.connect(y)
	y.connect(x)
	return x, y
}

// newEnd is a side with its buffer, and without its queue pair.
func newEnd(t T, d *uapi.Device, size int) *End {
	t.Helper()
	e := &End{Device: d, t: t}
	var err error
	if e.Buf, err = uapi.Alloc(size); err != nil {
		t.Fatalf("uapitest: %v", err)
	}
	t.Cleanup(func() { e.check(uapi.Free(e.Buf)) })
	if e.MR, e.Local, err = d.RegRegion(e.Buf, uapi.MRConfig{Access: AllAccess}); err != nil {
		t.Fatalf("uapitest: %v", err)
	}
	t.Cleanup(func() { e.destroy(d.DeregMR(e.MR)) })
	return e
}

// own makes the queue pair the side's, which destroys it at the end.
func (e *End) own(qp uapi.QP) {
	e.t.Helper()
	e.QP = qp
	e.t.Cleanup(func() { e.destroy(e.DestroyQP(e.QP)) })
}

func (e *End) connect(peer *End) {
	e.t.Helper()
	remote, err := peer.LocalEndpoint(peer.QP)
	if err == nil {
		err = e.ConnectQP(e.QP, remote)
	}
	if err != nil {
		e.t.Fatalf("uapitest: %v", err)
	}
}

// check reports an error of the end of a test.
func (e *End) check(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Errorf("uapitest: %v", err)
	}
}

// destroy reports an error, unless the test destroyed the object or closed the
// device itself.
func (e *End) destroy(err error) {
	e.t.Helper()
	if !errors.Is(err, syscall.EBADF) {
		e.check(err)
	}
}

// Next waits for the next n completions and returns them. It fails the test,
// with the completion's error, when one is no success, and when they do not
// come within 30 seconds.
func (e *End) Next(n int) []uapi.WC {
	e.t.Helper()
	wc := e.NextUnchecked(n)
	for i := range wc {
		if err := wc[i].Err(); err != nil {
			e.t.Fatalf("uapitest: completion %d of %d: %v", i+1, n, err)
		}
	}
	return wc
}

// NextUnchecked is Next for tests of failures: the completions' statuses are
// the caller's to check.
func (e *End) NextUnchecked(n int) []uapi.WC {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	wc := make([]uapi.WC, n)
	for got := 0; got < n; {
		m, err := e.WaitCQ(ctx, e.QP, wc[got:])
		if err != nil {
			e.t.Fatalf("uapitest: completion %d of %d: %v", got+1, n, err)
		}
		got += m
	}
	return wc
}

// Must fails the test if err is not nil. It takes the results of a post:
//
//	id := x.Must(x.Write(x.QP, uapi.SGE{MR: x.MR, Length: 12}, x.Peer))
func (e *End) Must(id uapi.WRID, err error) uapi.WRID {
	e.t.Helper()
	if err != nil {
		e.t.Fatalf("uapitest: %v", err)
	}
	return id
}
