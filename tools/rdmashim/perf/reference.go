package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf/rawudp"
)

// The references that need nothing installed. Both sides are processes, as ours
// are: a Peer starts the one that answers, and says where it listens and how to
// end it.

// Peer starts the other side of a reference.
type Peer func(ctx context.Context) (addr netip.AddrPort, stop func(), err error)

// RawUDP is the goodput, in bytes a second, of messages over UDP with GSO, GRO,
// CRC-32 and the copies of both sides, for about d. The other side is UDPSink. An
// error Is syscall.ENOTSUP where there is no GSO.
func RawUDP(ctx context.Context, size int, d time.Duration, other Peer) (float64, error) {
	to, stop, err := other(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	s, err := rawudp.NewSender(rawudp.Config{Size: size}, to)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	return paced(ctx, size, d, s.Move)
}

// UDPSink takes what RawUDP sends until ctx ends, which is no error. It tells
// announce where it listens.
func UDPSink(ctx context.Context, size int, announce func(netip.AddrPort) error) error {
	r, err := rawudp.NewReceiver(rawudp.Config{Size: size})
	if err != nil {
		return err
	}
	defer r.Close()
	if err := announce(r.Addr()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { r.Close() })()
	if err := r.Serve(); ctx.Err() == nil {
		return err
	}
	return nil
}

// GoTCP is the same over a TCP connection of package net. The other side is
// TCPSink.
func GoTCP(ctx context.Context, size int, d time.Duration, other Peer) (float64, error) {
	to, stop, err := other(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	message, count := make([]byte, size), make([]byte, 8)
	pattern(message, true, 0, 0)
	return paced(ctx, size, d, func(n int) error {
		binary.BigEndian.PutUint64(count, uint64(n))
		if _, err := c.Write(count); err != nil {
			return err
		}
		for range n {
			if _, err := c.Write(message); err != nil {
				return err
			}
		}
		_, err := io.ReadFull(c, count) // all has arrived
		return err
	})
}

// TCPSink takes what one GoTCP sends: how many messages come, the messages, and
// an answer that they have. It ends with the connection, or with ctx, which is
// no error, and tells announce where it listens.
func TCPSink(ctx context.Context, size int, announce func(netip.AddrPort) error) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := announce(ln.Addr().(*net.TCPAddr).AddrPort()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	c, err := ln.Accept()
	if err == nil {
		defer c.Close()
		defer context.AfterFunc(ctx, func() { c.Close() })()
		message, count := make([]byte, size), make([]byte, 8)
		for err == nil {
			_, err = io.ReadFull(c, count)
			for n := binary.BigEndian.Uint64(count); n > 0 && err == nil; n-- {
				_, err = io.ReadFull(c, message)
			}
			if err == nil {
				_, err = c.Write(count)
			}
		}
	}
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// paced moves messages for about d, in growing numbers, and takes the rate of
// the last and largest.
func paced(ctx context.Context, size int, d time.Duration, move func(n int) error) (float64, error) {
	for n := 1; ; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		began := time.Now()
		if err := move(n); err != nil {
			return 0, err
		}
		took := max(time.Since(began), time.Microsecond)
		if took > d/2 || n > 1<<28 {
			return float64(n) * float64(size) / took.Seconds(), nil
		}
		n = max(2*n, min(16*n, int(float64(n)*d.Seconds()/took.Seconds())))
	}
}

// ackSize is the length of an acknowledgement of the ping-pong.
const ackSize = 16

// UDPPingPong is half the median round trip, in µs, of datagrams of size bytes
// between two sockets, each answered and then acknowledged, for about d. Both
// sides spin, or wait as package net does. other starts the side that answers,
// UDPPong in another process, for the socket at from, and says where it listens.
func UDPPingPong(ctx context.Context, size int, d time.Duration, spin bool,
	other func(ctx context.Context, from netip.AddrPort) (to netip.AddrPort, stop func(), err error),
) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	b, err := newBall(size, spin)
	if err != nil {
		return 0, err
	}
	defer b.conn.Close()
	var stop func()
	if b.peer, stop, err = other(ctx, b.addr()); err != nil {
		return 0, err
	}
	defer stop()
	defer context.AfterFunc(ctx, func() { b.conn.Close() })()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	h := newHistogram()
	began := time.Now()
	for at := began; at.Sub(began) < d; {
		if err := b.turn(ctx); err != nil {
			return 0, fmt.Errorf("raw UDP ping-pong: %w", err)
		}
		now := time.Now()
		_ = h.RecordValue(int64(min(now.Sub(at)/2, longest)))
		at = now
	}
	return newLatency(h).Typical, nil
}

// UDPPong answers UDPPingPong's socket at peer until ctx ends, which is no
// error. It tells announce where it listens.
func UDPPong(ctx context.Context, size int, spin bool, peer netip.AddrPort, announce func(netip.AddrPort) error) error {
	b, err := newBall(size, spin)
	if err != nil {
		return err
	}
	defer b.conn.Close()
	b.peer = peer
	if err := announce(b.addr()); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { b.conn.Close() })()
	for err == nil {
		if err = b.hear(ctx); err == nil {
			err = b.say()
		}
		if err == nil {
			err = b.acknowledge()
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// turn says, hears and acknowledges.
func (b *ball) turn(ctx context.Context) error {
	if err := b.say(); err != nil {
		return err
	}
	if err := b.hear(ctx); err != nil {
		return err
	}
	return b.acknowledge()
}
