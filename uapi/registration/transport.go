package registration

import (
	"context"
	"net"
	"net/netip"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// Transport is the place of a datapath: an address and the sizes of its queues.
type Transport interface {
	// Kind is the transport's word in errors and figures: "soft", "kernel",
	// "tcp".
	Kind() string
	// Open opens the datapath. config is checked and has its defaults.
	Open(ctx context.Context, config *Config) (Datapath, error)
}

// Datapath is an open transport. Its methods may be called concurrently.
type Datapath interface {
	// Addr is the address that connections leave from and listeners have.
	Addr() netip.Addr
	// Listen listens at a port of the address, 0 for a free one.
	Listen(ctx context.Context, port int) (Acceptor, error)
	// Dial connects to addr, HOST:PORT, and shakes hands.
	Dial(ctx context.Context, addr string) (Session, error)
	// Below counts the datapath's work beneath its sessions.
	Below() Below
	// Close gives the transport back. Acceptors and sessions were closed
	// before; data that they wrote may arrive until ctx ends.
	Close(ctx context.Context) error
}

// Acceptor gives the sessions that came to a port, their handshakes done. A
// handshake that fails is counted and disturbs no other.
type Acceptor interface {
	// Accept returns the next session; net.ErrClosed after Close.
	Accept(ctx context.Context) (Session, error)
	Addr() netip.AddrPort
	// Failed is how many handshakes failed, and why the last one did.
	Failed() (n uint64, last error)
	Close() error
}

// Session is a connection as its transport has it: a [Conn] whose errors do not
// name the registration. Errors are package qmux's.
type Session interface {
	OpenStreamSync(context.Context) (Stream, error)
	OpenUniStreamSync(context.Context) (SendStream, error)
	AcceptStream(context.Context) (Stream, error)
	AcceptUniStream(context.Context) (ReceiveStream, error)
	SendDatagram([]byte) error
	ReceiveDatagram(context.Context) ([]byte, error)
	// CloseWithError returns when the peer was told, within a bound. On a
	// session that has ended it changes nothing.
	CloseWithError(qmux.ApplicationErrorCode, string) error
	// Context ends with the session, with its error as cause.
	Context() context.Context
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// ConnectionState leaves Registration and Transport empty.
	ConnectionState() ConnectionState
	Counters() Counters
}
