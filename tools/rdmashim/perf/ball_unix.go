//go:build unix

package perf

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// ball is one socket of a ping-pong.
type ball struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	peer netip.AddrPort
	out  []byte
	ack  [ackSize]byte
	in   []byte
	spin bool
	n    int
	err  error
	read func(fd uintptr) bool
}

func newBall(size int, spin bool) (*ball, error) {
	if size == ackSize || size < 1 || size > 9000 {
		return nil, fmt.Errorf("a ping-pong of %d bytes: want 1 to 9000, and not %d: %w", size, ackSize, syscall.EINVAL)
	}
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	b := &ball{conn: c, out: make([]byte, size), in: make([]byte, size+1), spin: spin}
	if b.raw, err = c.SyscallConn(); err != nil {
		c.Close()
		return nil, err
	}
	b.read = func(fd uintptr) bool {
		b.n, b.err = syscall.Read(int(fd), b.in)
		return b.spin || b.err != syscall.EAGAIN
	}
	return b, nil
}

func (b *ball) addr() netip.AddrPort { return b.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

func (b *ball) say() error {
	_, err := b.conn.WriteToUDPAddrPort(b.out, b.peer)
	return err
}

func (b *ball) acknowledge() error {
	_, err := b.conn.WriteToUDPAddrPort(b.ack[:], b.peer)
	return err
}

// hear waits for a message; acknowledgements are passed over.
func (b *ball) hear(ctx context.Context) error {
	for spins := 1; ; spins++ {
		if err := b.raw.Read(b.read); err != nil {
			return err
		}
		if b.err == nil && b.n == len(b.out) {
			return nil
		}
		if b.err != nil && b.err != syscall.EAGAIN && b.err != syscall.EINTR {
			return b.err
		}
		if err := rest(ctx, spins); err != nil {
			return err
		}
	}
}
