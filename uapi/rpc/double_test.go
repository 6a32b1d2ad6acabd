package rpc

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// double is a session in memory: the client's bytes go to the server without a
// network in between. It lends bytes and spoils them after.
type double struct {
	server *Server
	// fails, if set, ends calls in the session's place.
	fails func(method string) error
}

var _ clientSession = (*double)(nil)

var clientAt, serverAt net.Addr = address("192.0.2.1:1"), address("192.0.2.2:2")

func (d *double) addrs() (local, remote net.Addr) { return clientAt, serverAt }
func (d *double) close() error                    { return nil }

// lend is bytes that are spoilt by the function it returns.
func lend(b []byte) (lent []byte, spoil func()) {
	lent = bytes.Clone(b)
	return lent, func() {
		for i := range lent {
			lent[i] = 0xa5
		}
	}
}

func appended(b *body) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	return b.Append(nil)
}

// spoiler ends a loan.
type spoiler func()

func (s spoiler) Release() { s() }

func (d *double) call(ctx context.Context, r *request, t taker) error {
	if d.fails != nil {
		if err := d.fails(r.method); err != nil {
			return err
		}
	}
	sent, err := appended(r.body)
	if err != nil {
		return err
	}
	type reply struct {
		a    *answer
		body []byte
		err  error
	}
	replied := make(chan reply, 1)
	lent, spoil := lend(sent)
	in := incoming{
		ctx: connContext(ctx, serverAt, clientAt), method: r.method, metadata: r.metadata, body: lent, loan: spoiler(spoil),
	}
	go func() { // which may outlive the call
		a, out := d.server.call(in)
		b, err := appended(out)
		if out != nil {
			out.free()
		}
		replied <- reply{a, b, err}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case r := <-replied:
		if r.err != nil {
			return r.err
		}
		lent, spoil := lend(r.body)
		defer spoil()
		return t.take(*r.a, lent)
	}
}

// message is one of a stream.
type message struct {
	metadata, body []byte
	has            bool
}

// pipeEnd is one end of a stream in memory.
type pipeEnd struct {
	ctx    context.Context
	out    chan<- message
	in     <-chan message
	closed sync.Once
	done   <-chan struct{} // the handler has returned
	answer *answer         // set before that
}

func (d *double) open(ctx context.Context, r *request) (clientSide, error) {
	there, back := make(chan message, 4), make(chan message, 4)
	done := make(chan struct{})
	client := &pipeEnd{ctx: ctx, out: there, in: back, done: done}
	go func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		client.answer = d.server.open(incoming{ctx: connContext(ctx, serverAt, clientAt), method: r.method, metadata: r.metadata},
			&pipeEnd{ctx: ctx, out: back, in: there, done: done})
		close(done)
		close(back)
	}()
	return client, nil
}

func (p *pipeEnd) send(metadata []byte, b *body) error {
	sent, err := appended(b)
	if err != nil {
		return err
	}
	select {
	case p.out <- message{metadata, sent, b != nil}:
		return nil
	case <-p.done:
		return io.EOF
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *pipeEnd) receive(take func(metadata, body []byte, has bool) error) error {
	select {
	case m, ok := <-p.in:
		if !ok {
			return io.EOF
		}
		lent, spoil := lend(m.body)
		defer spoil()
		return take(m.metadata, lent, m.has)
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func (p *pipeEnd) closeSend() error {
	p.closed.Do(func() { close(p.out) })
	return nil
}

func (p *pipeEnd) end() *answer { return p.answer }

var errBroken = status.Error(codes.Unavailable, "the connection broke")
