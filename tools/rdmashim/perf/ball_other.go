//go:build !unix

package perf

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// ball is one socket of a ping-pong.
type ball struct {
	conn *net.UDPConn
	peer netip.AddrPort
}

func newBall(int, bool) (*ball, error) { return nil, syscall.ENOTSUP }

func (*ball) addr() netip.AddrPort       { return netip.AddrPort{} }
func (*ball) say() error                 { return syscall.ENOTSUP }
func (*ball) acknowledge() error         { return syscall.ENOTSUP }
func (*ball) hear(context.Context) error { return syscall.ENOTSUP }
