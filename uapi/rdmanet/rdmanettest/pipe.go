package rdmanettest

import (
	"context"
	"net"
	"time"

	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// confirmed is longer than a listener waits for a dialler to confirm.
const confirmed = 5 * time.Second

// Pipe connects two devices with these options: x has dialled, and y was
// accepted, both with the config. They are closed at the end of the test, if it
// has not closed them. Faults that let no connection come about within 30
// seconds fail the test.
func Pipe(t uapitest.T, options string, config rdmanet.Config) (x, y *rdmanet.Conn) {
	t.Helper()
	dialer, l := Listen(t, options, config)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	accepted := make(chan net.Conn)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			select {
			case accepted <- c:
			case <-ctx.Done():
				_ = c.Close()
			}
		}
	}()
	for y == nil {
		c, err := dialer.DialContext(ctx, "rdma", l.Addr().String())
		if err != nil {
			t.Fatalf("rdmanettest: %v", err)
		}
		t.Cleanup(func() { _ = c.Close() })
		x = c.(*rdmanet.Conn)
		if y = peer(x, accepted); y == nil { // faults hit all confirmations
			_ = x.Close()
		}
	}
	t.Cleanup(func() { _ = y.Close() })
	return x, y
}

// peer returns the connection that was accepted for x, nil if none is.
func peer(x *rdmanet.Conn, accepted <-chan net.Conn) *rdmanet.Conn {
	late := time.After(confirmed)
	for {
		select {
		case c := <-accepted:
			if c.RemoteAddr() == x.LocalAddr() {
				return c.(*rdmanet.Conn)
			}
			_ = c.Close() // of one that was given up
		case <-late:
			return nil
		}
	}
}
