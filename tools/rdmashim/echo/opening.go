package echo

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// opening is a connection that looks at the first bytes that come.
type opening struct {
	net.Conn
	open  context.Context // ends with the connection
	close context.CancelFunc

	first []byte     // until known, as the one reader sees it
	known bool       // whether the peer speaks QMux
	begun chan error // which it has then
}

func newOpening(c net.Conn) *opening {
	o := &opening{Conn: c, begun: make(chan error, 1)}
	o.open, o.close = context.WithCancel(context.Background())
	return o
}

func (o *opening) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	o.look(b[:n])
	return n, err
}

func (o *opening) Close() error {
	defer o.close()
	return o.Conn.Close()
}

// look finds out from the first bytes whether the peer speaks QMux.
func (o *opening) look(b []byte) {
	if o.known {
		return
	}
	o.first = append(o.first, b...)
	ok, sure := wire.Opens(o.first)
	switch o.known = sure; {
	case ok && sure:
		o.begun <- nil
	case sure:
		o.begun <- fmt.Errorf("%v does not speak QMux: it begins with %q", o.RemoteAddr(), o.first[:min(len(o.first), 32)])
	}
}

// await waits until the peer has begun to speak QMux, for as long as ctx lasts
// and the connection does.
func (o *opening) await(ctx, connection context.Context) error {
	select {
	case err := <-o.begun:
		return err
	case <-connection.Done():
		select {
		case err := <-o.begun: // it spoke, and closed at once
			return err
		default:
			return fmt.Errorf("%w, before it spoke: it may not speak QMux, or want TLS (--tls)", context.Cause(connection))
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits until the byte stream is closed, which QMux does within 3 s of the
// connection's end. A nil opening does not.
func (o *opening) wait() {
	if o == nil {
		return
	}
	select {
	case <-o.open.Done():
	case <-time.After(beginTimeout):
	}
}
