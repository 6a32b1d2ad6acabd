package echo

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// opening is a connection that looks at the first bytes that come.
type opening struct {
	net.Conn
	closed chan struct{} // closed with the connection
	once   sync.Once     // for closed

	first []byte     // until known, as the one reader sees it
	known bool       // whether the peer speaks QMux
	begun chan error // which it has then
}

func newOpening(c net.Conn) *opening {
	return &opening{Conn: c, closed: make(chan struct{}), begun: make(chan error, 1)}
}

func (o *opening) Read(b []byte) (int, error) {
	n, err := o.Conn.Read(b)
	o.look(b[:n])
	return n, err
}

func (o *opening) Close() error {
	err := o.Conn.Close()
	o.once.Do(func() { close(o.closed) })
	return err
}

// look finds out from the first bytes whether the peer speaks QMux.
func (o *opening) look(b []byte) {
	if o.known {
		return
	}
	o.first = append(o.first, b...)
	ok, sure := wire.Opens(o.first)
	if o.known = sure; ok && sure {
		o.begun <- nil
	} else if sure {
		hint := ""
		if len(o.first) > 1 && (o.first[0] == 0x15 || o.first[0] == 0x16) && o.first[1] == 3 {
			hint = ", as TLS does (--tls)"
		}
		o.begun <- fmt.Errorf("%v does not speak QMux: it begins with %q%s", o.RemoteAddr(), o.first[:min(len(o.first), 32)], hint)
	}
	if sure {
		o.first = nil
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
	case <-o.closed:
	case <-time.After(beginTimeout):
	}
}
