package perf

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/rnic/link/udp/rawudp"
)

// The references that need nothing installed. Both sides of RawUDP and GoTCP are
// in this process, which spares them what two processes cost.

// RawUDP is the goodput, in bytes a second, of messages over UDP with GSO, GRO,
// CRC-32 and the copies of both sides, for about d. An error Is syscall.ENOTSUP
// where there is no GSO.
func RawUDP(ctx context.Context, size int, d time.Duration) (float64, error) {
	p, err := rawudp.New(rawudp.Config{Size: size})
	if err != nil {
		return 0, err
	}
	defer p.Close()
	return paced(ctx, size, d, p.Move)
}

// GoTCP is the same over a TCP connection of package net.
func GoTCP(ctx context.Context, size int, d time.Duration) (float64, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	tx, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		return 0, err
	}
	defer tx.Close()
	rx, err := ln.Accept()
	if err != nil {
		return 0, err
	}
	asked, moved := make(chan int), make(chan error, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer rx.Close()
		region := make([]byte, size)
		for n := range asked {
			var err error
			for ; n > 0 && err == nil; n-- {
				_, err = io.ReadFull(rx, region)
			}
			moved <- err
		}
	}()
	defer func() { tx.Close(); close(asked); <-ended }()
	message := make([]byte, size)
	pattern(message, true, 0, 0)
	return paced(ctx, size, d, func(n int) error {
		asked <- n
		for range n {
			if _, err := tx.Write(message); err != nil {
				return err
			}
		}
		return <-moved
	})
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
