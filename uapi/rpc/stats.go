package rpc

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
)

// watch reports one call or stream to grpc's stats handlers, in grpc-go's
// order. A nil watch has no handlers.
type watch struct {
	handlers []stats.Handler
	ctx      context.Context // with the handlers' tags
	client   bool
	method   string
	local    net.Addr
	remote   net.Addr
	begun    time.Time
}

// newWatch has the handlers tag a call, and returns the context with their
// tags. c is nil at the server, whose context names the peer.
func newWatch(ctx context.Context, handlers []stats.Handler, c *ClientConn, method string, failFast bool) (*watch, context.Context) {
	if len(handlers) == 0 {
		return nil, ctx
	}
	w := &watch{handlers: handlers, client: c != nil, method: method, begun: time.Now()}
	if c != nil {
		w.local, w.remote = c.addrs()
	} else if p, ok := peer.FromContext(ctx); ok {
		w.local, w.remote = p.LocalAddr, p.Addr
	}
	for _, h := range handlers {
		ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: method, FailFast: failFast})
	}
	w.ctx = ctx
	return w, ctx
}

func (w *watch) handleRPC(s stats.RPCStats) {
	for _, h := range w.handlers {
		h.HandleRPC(w.ctx, s)
	}
}

func (w *watch) begin(failFast, clientStreams, serverStreams bool) {
	if w != nil {
		w.handleRPC(&stats.Begin{Client: w.client, BeginTime: w.begun, FailFast: failFast, IsClientStream: clientStreams, IsServerStream: serverStreams})
	}
}

func (w *watch) inHeader(md metadata.MD, length int) {
	if w != nil {
		w.handleRPC(&stats.InHeader{Client: w.client, WireLength: length, Header: md, FullMethod: w.method, RemoteAddr: w.remote, LocalAddr: w.local})
	}
}

func (w *watch) outHeader(md metadata.MD) {
	if w != nil {
		w.handleRPC(&stats.OutHeader{Client: w.client, Header: md, FullMethod: w.method, RemoteAddr: w.remote, LocalAddr: w.local})
	}
}

func (w *watch) inPayload(m any, length int) {
	if w != nil {
		w.handleRPC(&stats.InPayload{Client: w.client, Payload: m, Length: length, CompressedLength: length, WireLength: length, RecvTime: time.Now()})
	}
}

func (w *watch) outPayload(m any, length int) {
	if w != nil {
		w.handleRPC(&stats.OutPayload{Client: w.client, Payload: m, Length: length, CompressedLength: length, WireLength: length, SentTime: time.Now()})
	}
}

func (w *watch) inTrailer(md metadata.MD) {
	if w != nil {
		w.handleRPC(&stats.InTrailer{Client: w.client, Trailer: md})
	}
}

func (w *watch) outTrailer(md metadata.MD) {
	if w != nil {
		w.handleRPC(&stats.OutTrailer{Client: w.client, Trailer: md})
	}
}

func (w *watch) end(trailers metadata.MD, err error) {
	if w != nil {
		w.handleRPC(&stats.End{Client: w.client, BeginTime: w.begun, EndTime: time.Now(), Trailer: trailers, Error: err})
	}
}
