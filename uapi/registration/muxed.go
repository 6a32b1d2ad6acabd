package registration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// carrier makes the byte streams of a transport.
type carrier interface {
	addr() netip.Addr
	listen(port int) (net.Listener, error)
	dial(ctx context.Context, addr string) (net.Conn, error)
	// describe adds the device and the queue pairs.
	describe(net.Conn, *ConnectionState)
	// count adds a byte stream's figures, and countDevice the device's, on
	// which that many are open.
	count(net.Conn, *Below)
	countDevice(conns int, b *Below)
	// abort closes a byte stream at once.
	abort(net.Conn)
	// close gives the device back; data of closed connections may arrive until
	// ctx ends.
	close(ctx context.Context) error
}

// muxed is the datapath of byte streams: TLS, if configured, and qmux on each.
type muxed struct {
	carrier
	config *Config

	mu     sync.Mutex
	conns  map[*byteStream]struct{} // that are open; guarded by mu, as is ended
	ended  Below                    // of those that have closed
	closed chan struct{}            // filled when one has
}

func newMuxed(config *Config, c carrier) Datapath {
	return &muxed{carrier: c, config: config, conns: map[*byteStream]struct{}{}, closed: make(chan struct{}, 1)}
}

// byteStream is a byte stream that its datapath knows until it is closed.
type byteStream struct {
	net.Conn
	m *muxed
}

func (m *muxed) track(conn net.Conn) *byteStream {
	b := &byteStream{conn, m}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.conns[b] = struct{}{}
	return b
}

// CloseWrite ends this end's direction.
func (b *byteStream) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// WriteBuffers sends several pieces at once, without a copy of its own.
func (b *byteStream) WriteBuffers(v *net.Buffers) (int64, error) {
	if ring, ok := b.Conn.(*rdmanet.Conn); ok {
		return ring.WriteBuffers(v)
	}
	return v.WriteTo(b.Conn)
}

// WriteTo lends w what arrives over RDMA.
func (b *byteStream) WriteTo(w io.Writer) (int64, error) {
	if ring, ok := b.Conn.(*rdmanet.Conn); ok {
		return ring.WriteTo(w)
	}
	return io.Copy(w, struct{ io.Reader }{b.Conn})
}

// Close closes it, and keeps its figures.
func (b *byteStream) Close() error {
	b.m.mu.Lock()
	if _, open := b.m.conns[b]; open {
		delete(b.m.conns, b)
		b.m.count(b.Conn, &b.m.ended)
	}
	b.m.mu.Unlock()
	err := b.Conn.Close()
	select {
	case b.m.closed <- struct{}{}:
	default:
	}
	return err
}

// Addr is the carrier's.
func (m *muxed) Addr() netip.Addr { return m.addr() }

// Below sums the byte streams.
func (m *muxed) Below() Below {
	m.mu.Lock()
	b, conns := m.ended, len(m.conns)
	for c := range m.conns {
		m.count(c.Conn, &b)
	}
	m.mu.Unlock()
	m.countDevice(conns, &b)
	return b
}

// side is qmux.Client or qmux.Server.
type side func(net.Conn, *qmux.Config) (*qmux.Conn, error)

// Dial connects, and shakes hands.
func (m *muxed) Dial(ctx context.Context, addr string) (Session, error) {
	conn, err := m.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	stream := m.track(conn)
	if m.config.TLS == nil {
		return m.session(stream, stream, qmux.Client)
	}
	config := m.config.TLS
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			stream.Close()
			return nil, err
		}
		config = config.Clone()
		config.ServerName = host
	}
	return m.secure(ctx, stream, tls.Client(stream, config), qmux.Client)
}

// secure shakes hands within ctx and the configured time.
func (m *muxed) secure(ctx context.Context, stream *byteStream, conn *tls.Conn, side side) (Session, error) {
	inner, cancel := context.WithTimeout(ctx, m.config.Streams.HandshakeIdleTimeout)
	defer cancel()
	if err := conn.HandshakeContext(inner); err != nil {
		stream.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return m.session(stream, conn, side)
}

// session puts qmux on conn, which is stream or stands on it.
func (m *muxed) session(stream *byteStream, conn net.Conn, side side) (Session, error) {
	streams := m.config.Streams
	c, err := side(conn, &streams)
	if err != nil {
		return nil, err
	}
	s := &session{Conn: c}
	s.state.Protocol = m.config.Protocol
	m.describe(stream.Conn, &s.state)
	return s, nil
}

// Close waits for the byte streams that their sessions have not closed yet, and
// aborts them when ctx ends.
func (m *muxed) Close(ctx context.Context) error {
	for {
		m.mu.Lock()
		open := slices.Collect(maps.Keys(m.conns))
		m.mu.Unlock()
		if len(open) == 0 {
			return m.close(ctx)
		}
		select {
		case <-m.closed:
		case <-ctx.Done():
			for _, b := range open {
				m.abort(b.Conn)
				b.Close()
			}
		}
	}
}

// session is a qmux.Conn with this package's faces of its streams.
type session struct {
	*qmux.Conn
	state ConnectionState // the part that does not change
}

func (s *session) OpenStreamSync(ctx context.Context) (Stream, error) {
	return orNil[Stream](s.Conn.OpenStreamSync(ctx))
}

func (s *session) OpenUniStreamSync(ctx context.Context) (SendStream, error) {
	return orNil[SendStream](s.Conn.OpenUniStreamSync(ctx))
}

func (s *session) AcceptStream(ctx context.Context) (Stream, error) {
	return orNil[Stream](s.Conn.AcceptStream(ctx))
}

func (s *session) AcceptUniStream(ctx context.Context) (ReceiveStream, error) {
	return orNil[ReceiveStream](s.Conn.AcceptUniStream(ctx))
}

// ConnectionState adds what the ends agreed on.
func (s *session) ConnectionState() ConnectionState {
	state, now := s.state, s.Conn.ConnectionState()
	state.TLS, state.Datagrams = now.TLS, now.SupportsDatagrams
	if now.TLS.NegotiatedProtocol != "" {
		state.Protocol = now.TLS.NegotiatedProtocol
	}
	return state
}

// Counters are those of the qmux.Conn.
func (s *session) Counters() Counters { return counters(s.Conn.ConnectionStats()) }

// orNil is s, or nil with an error.
func orNil[Face any, S any](s S, err error) (face Face, _ error) {
	if err != nil {
		return face, err
	}
	return any(s).(Face), nil
}
