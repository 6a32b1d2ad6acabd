package rpc

import (
	"context"
	"net"

	"google.golang.org/grpc/peer"
)

// The seam between gRPC's interfaces and sessions: this package's demands on
// uapi/rpc/session, in bytes. Bytes that a function is given are lent until it
// returns. Metadata, text and details have 36 KiB together at most
// (maxMetadata, maxText, maxDetails), which a session's message must hold
// besides its body.

// request is a call on its way out, or a stream's opening.
type request struct {
	method       string // "/service/method"
	metadata     []byte
	body         *body // nil for a stream
	waitForReady bool
	maxReply     int // bytes of a reply's or a stream's message
}

// answer is how a call or stream ends: the handler's status.
type answer struct {
	code     uint32
	text     string
	details  []byte
	metadata []byte
}

// taker takes an answer, whose bytes are lent.
type taker interface {
	take(a answer, body []byte) error
}

// clientSession is a session's client.
type clientSession interface {
	// call makes a call and gives its answer to t, in the caller's goroutine.
	// It knows neither r nor t when it has returned. Errors are t's as they
	// are, the context's, fateStatus of a fate, another status of grpc's; and
	// any other means that the call was not executed: UNAVAILABLE.
	call(ctx context.Context, r *request, t taker) error
	// open opens a stream, which ends with ctx.
	open(ctx context.Context, r *request) (clientSide, error)
	addressed
	close() error
}

// side is an end of a stream. One goroutine sends and one receives.
type side interface {
	// send sends metadata, a message, or both; b is nil for metadata alone.
	send(metadata []byte, b *body) error
	// receive gives the next message's metadata and body to take; has is
	// false for metadata alone. At the peer's end it returns io.EOF.
	receive(take func(metadata, body []byte, has bool) error) error
}

// clientSide is the client's end of a stream.
type clientSide interface {
	side
	// closeSend ends this direction; the server's receive returns io.EOF.
	closeSend() error
	// end is the handler's status, when receive has returned io.EOF.
	end() *answer
}

// incoming describes a call or stream to a server's handler.
type incoming struct {
	ctx      context.Context // below connContext's; ends with the deadline, a cancel, or a stream's connection
	method   string
	metadata []byte
	body     []byte   // of a call; lent until it is released
	loan     releaser // nil if the body is not lent
	memory   memory   // nil if there is none
}

// memory is a session.Memory.
type memory interface {
	Lend(n int) []byte
	Hold(body []byte) bool
	Release(b []byte)
}

// releaser ends a loan.
type releaser interface{ Release() }

// addrs are those that connContext was given.
func (in *incoming) addrs() (local, remote net.Addr) {
	p, _ := peer.FromContext(in.ctx)
	return p.LocalAddr, p.Addr
}
