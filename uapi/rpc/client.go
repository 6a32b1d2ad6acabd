package rpc

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

const (
	defaultMaxReceive = 4 << 20 // bytes of a message, as in grpc-go
	defaultMaxSend    = 64 << 20
)

// ClientConfig says how a ClientConn makes its calls. The zero value is good.
type ClientConfig struct {
	// Device is the device to use; nil opens that from which the server is
	// reached, as uapi.OpenRoute does, and Close closes it. Session.Connect has
	// a device of its own.
	Device *uapi.Device
	// Session has the bounds of the session.
	Session session.ClientConfig
	// UnaryInterceptors and StreamInterceptors stand around each call, the
	// first outermost. They are given a grpc.ClientConn that never connects,
	// of which Target alone means something.
	UnaryInterceptors  []grpc.UnaryClientInterceptor
	StreamInterceptors []grpc.StreamClientInterceptor
	// StatsHandlers are told of each call, and of the ClientConn as of one
	// connection.
	StatsHandlers []stats.Handler
	// CallOptions precede those of each call.
	CallOptions []grpc.CallOption
}

// ClientConn makes the calls of generated stubs on one session: it is a
// grpc.ClientConnInterface. It is safe for concurrent use.
type ClientConn struct {
	session *session.Client
	device  *uapi.Device // nil if it is the program's
	config  ClientConfig
	target  string
	unary   grpc.UnaryClientInterceptor  // nil without interceptors
	stream  grpc.StreamClientInterceptor // nil without interceptors
	named   *grpc.ClientConn             // the connection that interceptors are given
	conn    context.Context              // tagged by the stats handlers
}

var _ grpc.ClientConnInterface = (*ClientConn)(nil)

// Target is the address that Dial was given.
func (c *ClientConn) Target() string { return c.target }

// Close ends the session. Calls under way end with CANCELLED, those that were
// not sent with UNAVAILABLE and net.ErrClosed, later ones too: a program that
// repeats UNAVAILABLE without a bound asks errors.Is.
func (c *ClientConn) Close() error {
	err := errors.Join(c.session.Close(), c.closeDevice())
	if c.named != nil {
		_ = c.named.Close()
	}
	for _, h := range c.config.StatsHandlers {
		h.HandleConn(c.conn, &stats.ConnEnd{Client: true})
	}
	return err
}

// Invoke makes a unary call: it sends args and fills reply. The error has a
// status of grpc's: the handler's, whole, or the session's; FateOf tells of a
// call that has no answer whether it was executed.
func (c *ClientConn) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	if c.unary != nil {
		return c.unary(ctx, method, args, reply, c.named, c.invoke, c.combine(options)...)
	}
	return c.invoke(ctx, method, args, reply, nil, c.combine(options)...)
}

// combine puts the connection's options before a call's.
func (c *ClientConn) combine(options []grpc.CallOption) []grpc.CallOption {
	switch {
	case len(c.config.CallOptions) == 0:
		return options
	case len(options) == 0:
		return c.config.CallOptions
	}
	return append(c.config.CallOptions[:len(c.config.CallOptions):len(c.config.CallOptions)], options...)
}

// NewStream opens a stream. Its errors are Invoke's.
func (c *ClientConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	if c.stream != nil {
		return c.stream(ctx, desc, c.named, method, c.newStream, c.combine(options)...)
	}
	return c.newStream(ctx, desc, nil, method, c.combine(options)...)
}

// unaryCall is a call under way: what its options ask for, and the answer.
type unaryCall struct {
	info     callInfo
	call     session.Call
	out      body
	watch    *watch
	memory   session.Memory
	reply    any
	trailers metadata.MD
}

var unaryCalls = sync.Pool{New: func() any {
	u := new(unaryCall)
	u.call.Reply = u.take
	return u
}}

// invoke makes a call, within the interceptors.
func (c *ClientConn) invoke(ctx context.Context, method string, args, reply any, _ *grpc.ClientConn, options ...grpc.CallOption) (err error) {
	u := unaryCalls.Get().(*unaryCall)
	defer func() {
		*u = unaryCall{call: session.Call{Reply: u.call.Reply}}
		unaryCalls.Put(u)
	}()
	u.reply, u.memory = reply, c.session.Memory()
	if err = u.info.set(options); err == nil {
		err = u.do(ctx, c, method, args)
	}
	u.info.ended(u.trailers, err)
	return err
}

// do makes the call.
func (u *unaryCall) do(ctx context.Context, c *ClientConn, method string, args any) (err error) {
	u.watch, ctx = newWatch(ctx, c.config.StatsHandlers, c, method, !u.info.waitForReady)
	u.watch.begin(!u.info.waitForReady, false, false)
	defer func() { u.watch.end(u.trailers, err) }()
	md, err := u.info.outgoing(ctx, c.target, method)
	if err != nil {
		return err
	}
	x := &u.call
	x.Method, x.WaitForReady, x.MaxReply, x.Body = method, u.info.waitForReady, u.info.maxReceive, &u.out
	if x.Metadata, err = encodeMetadata(u.info.codec.subtype, md, nil); err != nil {
		return err
	}
	if u.out, err = u.info.codec.marshal(args, u.info.maxSend); err != nil {
		return err
	}
	defer u.out.free()
	u.watch.outHeader(md)
	u.watch.outPayload(args, u.out.size)
	u.info.begun(c)
	return sessionStatus(c.session.Call(ctx, x), x.MaxReply)
}

// take reads the answer, whose bytes are lent until it returns.
func (u *unaryCall) take(a *session.Answer) error {
	headers, trailers, err := parseMetadata(a.Metadata)
	if err != nil {
		return err
	}
	u.trailers = trailers
	u.info.headed(headers)
	u.watch.inHeader(headers, len(a.Metadata))
	if err := unpackStatus(a.Status); err != nil {
		u.watch.inTrailer(trailers)
		return err
	}
	if err := u.info.codec.unmarshal(u.memory, a.Body, u.reply, u.info.maxReceive, u.watch); err != nil {
		return err
	}
	u.watch.inTrailer(trailers)
	return nil
}

// tooLong is the status of a message beyond its bound.
func tooLong(what string, size, most int) error {
	return status.Errorf(codes.ResourceExhausted, "rpc: a message of %d bytes is not %s; the most are %d, set by grpc.MaxCall…MsgSize and the server's config", size, what, most)
}
