package registration

import (
	"cmp"
	"crypto/tls"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// Config describes a registration. Transport, with its addresses and queues, is
// the datapath; the other fields mean the same on every transport.
type Config struct {
	// Name is the registration's in errors and figures (the transport's kind).
	Name string
	// Transport carries all connections: Soft, Kernel, TCP.
	Transport Transport
	// TLS protects every connection, inside its byte stream. It needs
	// NextProtos, and a certificate unless DialOnly. Its ServerName, where
	// empty, is the host that is dialled.
	TLS *tls.Config
	// Insecure is for connections without TLS. Either it or TLS is set.
	Insecure bool
	// Protocol is the application protocol of connections without TLS (any). On
	// RDMA an acceptor of another one refuses the dialer; TCP does not look.
	Protocol string
	// DialOnly is for a program that never listens: TLS needs no certificate.
	DialOnly bool
	// Streams is package qmux's, with two defaults of its own: MaxIdleTimeout
	// is 12 s and KeepAlivePeriod 4 s, so that a peer that died ends its
	// connections within 13 s and a program's silence none. A negative
	// KeepAlivePeriod is none. HandshakeIdleTimeout bounds handshakes of TLS
	// (5 s).
	Streams qmux.Config
}

const (
	defaultIdle      = 12 * time.Second
	defaultKeepAlive = 4 * time.Second
	defaultHandshake = 5 * time.Second
)

// Rings is the datapath of RDMA: the memory of connections and the depth of
// queues. The zero value of every field means the default in parentheses.
type Rings struct {
	// Ring is the length in bytes of each direction's ring, a power of two from
	// 16 KiB to 64 MiB (1 MiB; on a kernel's device 256 KiB, or 64 KiB where
	// little memory may be locked). It is how much is on its way at most; the
	// depth of the queues follows.
	Ring int
	// MaxChunk bounds the messages of the device in bytes (256 KiB).
	MaxChunk int
}

// withDefaults is c with its defaults.
func (c Config) withDefaults() Config {
	s := &c.Streams
	s.HandshakeIdleTimeout = cmp.Or(s.HandshakeIdleTimeout, defaultHandshake)
	s.MaxIdleTimeout = cmp.Or(s.MaxIdleTimeout, defaultIdle)
	s.KeepAlivePeriod = max(cmp.Or(s.KeepAlivePeriod, defaultKeepAlive), 0)
	return c
}
