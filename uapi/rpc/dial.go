package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// Dial makes a ClientConn to the server at addr, HOST:PORT. It does not wait
// for a connection: the first call does, and connects again after a break.
//
// Errors: those of uapi.OpenRoute, where config has neither a context nor
// Connect; EINVAL for an invalid configuration or an address without a port.
func Dial(ctx context.Context, addr string, config ClientConfig) (*ClientConn, error) {
	device := config.Context
	if device == nil && config.Session.Connect == nil {
		var err error
		if device, err = uapi.OpenRoute(ctx, addr, uapi.OpenConfig{}); err != nil {
			return nil, err
		}
	}
	n := &native{remote: address(addr)}
	if config.Context == nil {
		n.device = device // nil if Connect has one
	}
	var err error
	if n.client, err = session.Dial(device, addr, config.Session); err != nil {
		return nil, errors.Join(err, n.closeDevice())
	}
	c, err := newClientConn(n, addr, config)
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return c, nil
}

// Session returns the session that carries the calls; nil if there is none, as
// in a test. It does what gRPC has no words for.
func (c *ClientConn) Session() *session.Client {
	if n, ok := c.session.(*native); ok {
		return n.client
	}
	return nil
}

// native is a session over RDMA: a clientSession.
type native struct {
	client *session.Client
	device *uapi.Context // nil if it is the program's
	remote Addr          // before the first connection
}

// Addr is the address of an end.
type Addr struct{ netip.AddrPort }

// Network is "rdma".
func (Addr) Network() string { return "rdma" }

func address(s string) Addr {
	a, _ := netip.ParseAddrPort(s)
	return Addr{a}
}

func (n *native) addrs() (local, remote net.Addr) {
	l, r := Addr{n.client.LocalAddr()}, Addr{n.client.RemoteAddr()}
	if !r.IsValid() {
		r = n.remote
	}
	return l, r
}

func (n *native) close() error { return errors.Join(n.client.Close(), n.closeDevice()) }

func (n *native) closeDevice() error {
	if n.device == nil {
		return nil
	}
	return n.device.Close()
}

func (n *native) call(ctx context.Context, r *request, t taker) error {
	x := nativeCalls.Get().(*nativeCall)
	x.taker = t
	err := n.client.Call(ctx, &session.Call{
		Method: r.method, Metadata: r.metadata, Body: r.body, WaitForReady: r.waitForReady, MaxReply: r.maxReply, Reply: x.reply,
	})
	x.taker = nil
	nativeCalls.Put(x)
	return callError(err, r)
}

// nativeCall is a call on its way.
type nativeCall struct {
	taker taker
	reply func(*session.Answer) error // gives the answer to the taker
}

var nativeCalls = sync.Pool{New: func() any {
	x := &nativeCall{}
	x.reply = func(a *session.Answer) error {
		return x.taker.take(answer{code: a.Status.Code, text: a.Status.Text, details: a.Status.Details, metadata: a.Metadata}, a.Body)
	}
	return x
}}

// callError turns a session's error into the one that a call ends with.
func callError(err error, r *request) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, session.ErrFateUnknown):
		return fateStatus(FateUnknown)
	case errors.Is(err, session.ErrExecuted):
		return fateStatus(FateExecuted)
	case errors.Is(err, session.ErrTooLong):
		return status.Errorf(codes.ResourceExhausted, "rpc: a message of more than %d bytes is not received; grpc.MaxCallRecvMsgSize sets the most", r.maxReply)
	case errors.Is(err, session.ErrUnavailable), errors.Is(err, session.ErrNotSent):
		return notSent(err)
	case errors.Is(err, session.ErrBroken):
		return status.Error(codes.Unavailable, line(err))
	case errors.Is(err, net.ErrClosed):
		return status.Error(codes.Canceled, "rpc: the ClientConn was closed; the call may have been executed")
	case errors.Is(err, syscall.EMSGSIZE):
		return status.Error(codes.ResourceExhausted, err.Error())
	case errors.Is(err, syscall.EINVAL):
		return status.Error(codes.Internal, err.Error())
	}
	return err
}

func (n *native) open(ctx context.Context, r *request) (clientSide, error) {
	s, err := n.client.Open(ctx, &session.Call{Method: r.method, Metadata: r.metadata, WaitForReady: r.waitForReady})
	if err != nil {
		return nil, callError(err, r)
	}
	return &nativeStream{s, r}, nil
}

// nativeStream is a stream of a session: a clientSide.
type nativeStream struct {
	stream  *session.Stream
	request *request
}

func (s *nativeStream) send(metadata []byte, b *body) error {
	return callError(s.stream.Send(metadata, some(b)), s.request)
}

func (s *nativeStream) receive(take func(metadata, body []byte, has bool) error) error {
	err := s.stream.Recv(take)
	if err == io.EOF {
		return err
	}
	return callError(err, s.request)
}

func (s *nativeStream) closeSend() error { return s.stream.CloseSend() }

func (s *nativeStream) end() *answer {
	a := s.stream.End()
	return &answer{code: a.Status.Code, text: a.Status.Text, details: a.Status.Details, metadata: a.Metadata}
}

// some is a body, or none.
func some(b *body) session.Body {
	if b == nil {
		return nil
	}
	return b
}
