//go:build guest && linux

package guesttest

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/rdmacm"
)

// server accepts everything, with a queue pair each, until it is closed.
type server struct {
	*side
	l        *rdmacm.Listener
	accepted chan *served // one for each request, also for one that failed
	done     chan struct{}
}

type served struct {
	req *rdmacm.Request
	qp  *conn
	err error
}

func serve(t testing.TB, s *side) *server {
	t.Helper()
	l, err := s.ch.Listen(netip.AddrPortFrom(self, 0), 0, rdmacm.Options{})
	require.NoError(t, err)
	v := &server{side: s, l: l, accepted: make(chan *served, 128), done: make(chan struct{})}
	go v.run()
	t.Cleanup(func() { _ = v.close() }) // the channel may be closed by then
	return v
}

func (v *server) run() {
	defer close(v.done)
	for {
		req, err := v.l.Accept(context.Background())
		if err != nil {
			return
		}
		c := &served{req: req}
		if c.qp, c.err = v.newQP(); c.err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			c.err = req.Accept(ctx, c.qp, common)
			cancel()
		}
		v.accepted <- c
	}
}

func (v *server) close() error {
	err := v.l.Close()
	<-v.done
	return err
}

func (c *served) close() error {
	err := c.req.Destroy()
	if e := c.qp.close(); err == nil {
		err = e
	}
	return err
}

// dial connects a queue pair and returns the objects, for a caller that expects
// no error.
func (s *side) dial(ctx context.Context, to netip.AddrPort) (id *rdmacm.ID, qp *conn, err error) {
	id, err = s.ch.Resolve(ctx, netip.AddrPort{}, to, rdmacm.Options{})
	if err != nil {
		return nil, nil, err
	}
	if qp, err = s.newQP(); err == nil {
		if _, err = id.Connect(ctx, qp, common); err == nil {
			return id, qp, nil
		}
		_ = qp.close()
	}
	_ = id.Destroy()
	return nil, nil, err
}
