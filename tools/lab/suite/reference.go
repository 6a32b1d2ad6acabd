package suite

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"time"
)

// The references that need nothing installed. Both sides are processes, as ours
// are: partner starts the one that answers, and says where it listens and how
// to end it.
type partner func(ctx context.Context) (at netip.AddrPort, stop func(), err error)

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

const (
	// pongSize is the length of the ping-pong's messages in bytes, ackSize that
	// of their acknowledgements.
	pongSize, ackSize = 64, 16
	// pongPatience is how much longer than asked for a ping-pong may take.
	pongPatience = 5 * time.Second
)

// ball is one socket of a ping-pong.
type ball struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	peer netip.AddrPort
	in   [pongSize + 1]byte
	spin bool
	n    int
	err  error
	read func(fd uintptr) bool
}

func newBall(spin bool) (*ball, error) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	b := &ball{conn: c, spin: spin}
	if b.raw, err = c.SyscallConn(); err != nil {
		c.Close()
		return nil, err
	}
	b.read = func(fd uintptr) bool {
		b.n, b.err = read(fd, b.in[:])
		return b.spin || b.err != syscall.EAGAIN
	}
	return b, nil
}

func (b *ball) say(n int) error {
	var message [pongSize]byte
	_, err := b.conn.WriteToUDPAddrPort(message[:n], b.peer)
	return err
}

// hear waits for a message; acknowledgements are passed over.
func (b *ball) hear() error {
	for spins := 1; ; spins++ {
		if err := b.raw.Read(b.read); err != nil {
			return err // closed
		}
		switch {
		case b.err == nil && b.n == pongSize:
			return nil
		case b.err != nil && b.err != syscall.EAGAIN && b.err != syscall.EINTR:
			return b.err
		case spins%1024 == 0:
			runtime.Gosched()
		}
	}
}

// udpPingPong is half the median round trip, in µs, of datagrams between two
// sockets, each answered and then acknowledged, for about d. Both sides spin,
// or wait as package net does. other starts the side that answers the socket at
// from.
func udpPingPong(ctx context.Context, d time.Duration, spin bool, other func(from netip.AddrPort) partner) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, d+pongPatience)
	defer cancel()
	b, err := newBall(spin)
	if err != nil {
		return 0, err
	}
	defer b.conn.Close()
	var stop func()
	if b.peer, stop, err = other(b.conn.LocalAddr().(*net.UDPAddr).AddrPort())(ctx); err != nil {
		return 0, err
	}
	defer stop()
	defer context.AfterFunc(ctx, func() { b.conn.Close() })()
	var us []float64
	began := time.Now()
	for at := began; at.Sub(began) < d; {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		err := b.say(pongSize)
		if err == nil {
			err = b.hear()
		}
		if err == nil {
			err = b.say(ackSize)
		}
		if err != nil {
			return 0, fmt.Errorf("raw UDP ping-pong: %w", err)
		}
		now := time.Now()
		us = append(us, float64(now.Sub(at))/2e3)
		at = now
	}
	return median(us), nil
}

// udpPong answers udpPingPong's socket at peer.
func udpPong(ctx context.Context, spin bool, peer netip.AddrPort, announce func(netip.AddrPort) error) error {
	b, err := newBall(spin)
	if err != nil {
		return err
	}
	b.peer = peer
	defer b.conn.Close()
	defer context.AfterFunc(ctx, func() { b.conn.Close() })()
	err = announce(b.conn.LocalAddr().(*net.UDPAddr).AddrPort())
	for err == nil {
		if err = b.hear(); err == nil {
			err = b.say(pongSize)
		}
		if err == nil {
			err = b.say(ackSize)
		}
	}
	return err
}
