package uapitest

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

// Listen opens two devices on a private network, as Pair does, and listens
// through the connection manager on the second one. The first one dials
// l.Addr(). The listener is closed at the end of the test, before the devices.
func Listen(t T, options string) (dialer *uapi.Device, l *uapi.Listener) {
	t.Helper()
	dialer, d := Pair(t, options)
	info, err := d.QueryDevice()
	if err == nil {
		l, err = d.Listen(netip.AddrPortFrom(info.Address.Addr(), 0).String(), uapi.ListenConfig{})
	}
	if err != nil {
		t.Fatalf("uapitest: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := l.Close(); err != nil {
			t.Errorf("uapitest: %v", err)
		}
	})
	return dialer, l
}

// Dial connects two ends through the connection manager: x from the device,
// y at the listener, whose request it accepts. Each has a registered buffer
// that the peer may access in every way. They are destroyed at the end of the
// test.
func Dial(t T, d *uapi.Device, l *uapi.Listener) (x, y *End) {
	t.Helper()
	return DialWith(t, d, l, uapi.QPConfig{SendDepth: Depth, RecvDepth: Depth}, Size)
}

// DialWith is Dial with queue pairs as configured, the same on both sides, and
// buffers of that size.
func DialWith(t T, d *uapi.Device, l *uapi.Listener, config uapi.QPConfig, size int) (x, y *End) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	type accepted struct {
		device *uapi.Device
		qp     uapi.QP
		err    error
	}
	answer := make(chan accepted, 1)
	go func() {
		r, err := l.Accept(ctx)
		if err != nil {
			answer <- accepted{err: err}
			return
		}
		qp, err := r.CreateQPWith(config)
		if err == nil {
			qp, err = r.Accept(ctx, nil)
		} else {
			err = errors.Join(err, r.Reject(0, nil))
		}
		answer <- accepted{r.Device, qp, err}
	}()
	qp, err := d.Dial(ctx, l.Addr().String(), uapi.DialConfig{QPConfig: config})
	if err != nil {
		cancel()
	}
	a := <-answer
	if err != nil || a.err != nil {
		t.Fatalf("uapitest: %v", errors.Join(err, a.err))
	}
	x, y = newEnd(t, d, size), newEnd(t, a.device, size)
	x.own(qp)
	y.own(a.qp)
	x.Peer, y.Peer = y.Local, x.Local
	return x, y
}
