package qmux_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// streamConn is a stream as a net.Conn, of which Close ends both halves, and a
// Write that waits. That the peer has cancelled a half before is no error.
type streamConn struct {
	*qmux.Stream
	*qmux.Conn
}

func (c streamConn) Close() error {
	c.CancelRead(0)
	err := c.Stream.Close()
	var cancelled *qmux.StreamError
	switch {
	case errors.Is(err, syscall.EBUSY):
		c.CancelWrite(0)
	case !errors.As(err, &cancelled):
		return err
	}
	return nil
}

// TestNetConn holds streams to the rules of net.Conn for reads, writes,
// deadlines and closing.
func TestNetConn(t *testing.T) {
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		x, y := tcp(t)
		client, server := both(t, x, y, nil)
		a, err := client.OpenStreamSync(soon(t))
		if err != nil {
			return nil, nil, nil, err
		}
		if _, err := a.Write([]byte{0}); err != nil { // the peer learns of it so
			return nil, nil, nil, err
		}
		b, err := server.AcceptStream(soon(t))
		if err != nil {
			return nil, nil, nil, err
		}
		if _, err := b.Read(make([]byte, 1)); err != nil {
			return nil, nil, nil, err
		}
		stop := func() {
			client.CloseWithError(0, "")
			server.CloseWithError(0, "")
		}
		return streamConn{a, client}, streamConn{b, server}, stop, nil
	})
}
