package echo

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/wire"
)

// tap is a connection that looks at the first bytes that come, and records.
type tap struct {
	net.Conn
	in, out *recording    // nil without a record
	closed  chan struct{} // closed with the connection
	once    sync.Once     // for closed

	first  []byte     // until known, as the one reader sees it
	known  bool       // whether the peer speaks QMux
	opened chan error // which it has then
}

func newTap(c net.Conn, r *recorder) *tap {
	t := &tap{Conn: c, closed: make(chan struct{}), opened: make(chan error, 1)}
	t.in, t.out = r.connection(c)
	return t
}

func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.look(b[:n])
	t.in.write(b[:n], err)
	return n, err
}

// Write records before it writes, so that no answer is recorded before what it
// answers.
func (t *tap) Write(b []byte) (int, error) {
	t.out.write(b, nil)
	return t.Conn.Write(b)
}

// CloseWrite ends this side's direction.
func (t *tap) CloseWrite() error {
	t.out.end()
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection, which ends this side's direction.
func (t *tap) Close() error {
	t.out.end()
	err := t.Conn.Close()
	t.once.Do(func() { close(t.closed) })
	return err
}

// look finds out from the first bytes whether the peer speaks QMux.
func (t *tap) look(b []byte) {
	if t.known {
		return
	}
	t.first = append(t.first, b...)
	ok, sure := wire.Opens(t.first)
	if t.known = sure; ok && sure {
		t.opened <- nil
	} else if sure {
		hint := ""
		if len(t.first) > 1 && (t.first[0] == 0x15 || t.first[0] == 0x16) && t.first[1] == 3 {
			hint = ", as TLS does (--tls)"
		}
		t.opened <- fmt.Errorf("%v does not speak QMux: it begins with %q%s", t.RemoteAddr(), t.first[:min(len(t.first), 32)], hint)
	}
	if sure {
		t.first = nil
	}
}

// begun waits until the peer has begun to speak QMux, for as long as ctx lasts
// and the connection does.
func (t *tap) begun(ctx, connection context.Context) error {
	select {
	case err := <-t.opened:
		return err
	case <-connection.Done():
		select {
		case err := <-t.opened: // it spoke, and closed at once
			return err
		default:
			return fmt.Errorf("%w, before it spoke: it may not speak QMux, or want TLS (--tls)", context.Cause(connection))
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait waits until the byte stream is closed, which QMux does within 3 s of the
// connection's end. A nil tap does not.
func (t *tap) wait() {
	if t == nil {
		return
	}
	select {
	case <-t.closed:
	case <-time.After(beginTimeout):
	}
}
