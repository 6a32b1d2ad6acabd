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
	sure    chan struct{} // closed when the first bytes are known
	closed  chan struct{} // closed with the connection
	once    sync.Once     // for closed

	mu    sync.Mutex
	first []byte // guarded by mu: until sure
	wrong bool   // guarded by mu: the peer does not speak QMux
}

func newTap(c net.Conn, r *recorder) *tap {
	t := &tap{Conn: c, sure: make(chan struct{}), closed: make(chan struct{})}
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

func (t *tap) look(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.sure:
		return
	default:
	}
	t.first = append(t.first, b...)
	if ok, sure := wire.Opens(t.first); sure {
		t.wrong = !ok
		close(t.sure)
	}
}

// foreign is the error of a peer that speaks another protocol.
func (t *tap) foreign() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.wrong {
		return nil
	}
	hint := ""
	if len(t.first) > 1 && (t.first[0] == 0x15 || t.first[0] == 0x16) && t.first[1] == 3 {
		hint = ", as TLS does (--tls)"
	}
	return fmt.Errorf("%v does not speak QMux: it begins with %q%s", t.RemoteAddr(), t.first[:min(len(t.first), 32)], hint)
}

// begun waits until the peer has begun to speak QMux, for as long as ctx lasts
// and the connection does.
func (t *tap) begun(ctx, connection context.Context) (err error) {
	select {
	case <-t.sure:
	case <-connection.Done():
		select {
		case <-t.sure: // it spoke, and closed at once
		default:
			err = fmt.Errorf("%w, before it spoke: it may not speak QMux, or want TLS (--tls)", context.Cause(connection))
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if foreign := t.foreign(); foreign != nil {
		err = foreign
	}
	return err
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
