package qmux

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"time"

	"github.com/rdmashim/rdmashim/uapi/qmux/core"
)

// index is 1 for unidirectional streams, for the channels that wait for them.
func index(uni bool) int {
	if uni {
		return 1
	}
	return 0
}

// wait waits for get, which is called with the core locked, to return true. It
// tries again when ready is filled; a caller that succeeds fills it for the
// next.
func (c *Conn) wait(ctx context.Context, ready chan struct{}, get func() bool) error {
	waits := false
	patient := ready == c.accepts[0] || ready == c.accepts[1]
	for {
		ok := false
		var err error
		c.do(func() {
			if ok = get(); !ok {
				err = c.failed()
			}
			c.await(&waits, !ok && err == nil && !patient)
		})
		if ok {
			poke(ready)
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ready:
		case <-ctx.Done():
			c.do(func() { c.await(&waits, false) })
			return context.Cause(ctx)
		case <-c.ctx.Done():
		}
	}
}

// OpenStream opens a bidirectional stream. The error is StreamLimitReachedError
// while the peer has granted none, or that of the connection's end.
func (c *Conn) OpenStream() (*Stream, error) { return c.open(false) }

// OpenUniStream opens a unidirectional stream, as OpenStream.
func (c *Conn) OpenUniStream() (*SendStream, error) { return sendStream(c.open(true)) }

// OpenStreamSync is OpenStream, and waits for the peer's grant.
func (c *Conn) OpenStreamSync(ctx context.Context) (*Stream, error) { return c.openSync(ctx, false) }

// OpenUniStreamSync is OpenUniStream, and waits for the peer's grant.
func (c *Conn) OpenUniStreamSync(ctx context.Context) (*SendStream, error) {
	return sendStream(c.openSync(ctx, true))
}

// AcceptStream waits for the next bidirectional stream of the peer.
func (c *Conn) AcceptStream(ctx context.Context) (*Stream, error) { return c.accept(ctx, false) }

// AcceptUniStream waits for the next unidirectional stream of the peer.
func (c *Conn) AcceptUniStream(ctx context.Context) (*ReceiveStream, error) {
	s, err := c.accept(ctx, true)
	if err != nil {
		return nil, err
	}
	return &s.receive, nil
}

func sendStream(s *Stream, err error) (*SendStream, error) {
	if err != nil {
		return nil, err
	}
	return &s.send, nil
}

func (c *Conn) open(uni bool) (s *Stream, err error) {
	c.do(func() {
		if id, ok := c.core.Open(c.now(), uni); ok {
			s = c.stream(id)
		} else if err = c.failed(); err == nil {
			err = StreamLimitReachedError{}
		}
	})
	return s, err
}

func (c *Conn) openSync(ctx context.Context, uni bool) (s *Stream, err error) {
	err = c.wait(ctx, c.opens[index(uni)], func() bool {
		id, ok := c.core.Open(c.now(), uni)
		if ok {
			s = c.stream(id)
		}
		return ok
	})
	return s, err
}

func (c *Conn) accept(ctx context.Context, uni bool) (s *Stream, err error) {
	err = c.wait(ctx, c.accepts[index(uni)], func() bool {
		id, ok := c.core.Accept(uni)
		if ok {
			s = c.stream(id)
		}
		return ok
	})
	return s, err
}

// CloseWithError closes the connection; all its calls end with an
// *ApplicationError. It returns when the peer was told, or after 3 s. Bytes
// that a Write has not sent are lost. The error is always nil.
func (c *Conn) CloseWithError(code ApplicationErrorCode, reason string) error {
	c.do(func() { c.core.Close(c.now(), uint64(code), reason) })
	<-c.written
	return nil
}

// Context ends when the connection has, with its error as cause.
func (c *Conn) Context() context.Context { return c.ctx }

// LocalAddr is the byte stream's.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr is the byte stream's.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// SendDatagram queues a datagram, and waits while 128 are queued. It is lost
// only if the connection ends, or the peer's program takes too few. The error
// is a *DatagramTooLargeError, EOPNOTSUPP if the peer takes none, or that of
// the connection's end.
func (c *Conn) SendDatagram(p []byte) error {
	var err error
	ended := c.wait(context.Background(), c.room, func() bool {
		if err = c.core.SendDatagram(p); err == core.ErrTooLong {
			err = &DatagramTooLargeError{MaxDatagramPayloadSize: int64(c.core.MaxDatagram())}
		}
		return err != core.ErrFull && err != core.ErrNotReady && c.core.Cause() == nil
	})
	if ended != nil {
		return ended
	}
	return err
}

// ReceiveDatagram waits for the next datagram. Of 128 that wait the oldest is
// dropped for the next.
func (c *Conn) ReceiveDatagram(ctx context.Context) (p []byte, err error) {
	err = c.wait(ctx, c.grams, func() (ok bool) {
		p, ok = c.core.ReceiveDatagram()
		return ok
	})
	return p, err
}

// ConnectionState is the result of the handshake.
type ConnectionState struct {
	TLS               tls.ConnectionState // zero without TLS
	SupportsDatagrams struct{ Remote, Local bool }
	// SupportsStreamResetPartialDelivery is whether SetReliableBoundary works;
	// Local is false in draft 1.
	SupportsStreamResetPartialDelivery struct{ Remote, Local bool }
}

// ConnectionState reads it. The peer's part is unknown until its parameters are
// here.
func (c *Conn) ConnectionState() (s ConnectionState) {
	if secure, ok := c.conn.(*tls.Conn); ok {
		s.TLS = secure.ConnectionState()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.SupportsDatagrams.Remote = c.core.Peer().MaxDatagramFrameSize > 0
	s.SupportsDatagrams.Local = c.datagrams
	s.SupportsStreamResetPartialDelivery.Remote = c.core.Peer().ResetStreamAt
	s.SupportsStreamResetPartialDelivery.Local = c.resets
	return s
}

// ConnectionStats are the core's counters, and the round trips of its pings.
type ConnectionStats struct {
	core.Counters
	Deadlines           uint64        // that were set on streams
	MinRTT, SmoothedRTT time.Duration // 0 before the first ping
}

// Frames are FramesSent and FramesReceived by the names of the types.
func (s *ConnectionStats) Frames() (sent, received map[string]uint64) {
	return maps.Collect(s.FramesSent.All()), maps.Collect(s.FramesReceived.All())
}

// Timers is how often a timer was armed, by its kind: TimersArmed, and
// "deadline".
func (s *ConnectionStats) Timers() map[string]uint64 {
	armed := map[string]uint64{}
	for k, n := range s.TimersArmed {
		if n > 0 {
			armed[core.TimerKind(k).String()] = n
		}
	}
	if s.Deadlines > 0 {
		armed["deadline"] = s.Deadlines
	}
	return armed
}

// ConnectionStats reads the counters.
func (c *Conn) ConnectionStats() (s ConnectionStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	smoothed, shortest := c.core.RTT()
	return ConnectionStats{c.core.Counters(), c.deadlines.Load(), time.Duration(shortest), time.Duration(smoothed)}
}
