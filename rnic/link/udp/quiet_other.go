//go:build !linux || udpportable

package udp

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// loud is a socket that stays with the netpoller.
type loud struct {
	syscall.RawConn
	conn  *net.UDPConn
	look  func(fd uintptr) bool
	looks int
}

func detach(conn *net.UDPConn) (conduit, error) {
	raw, err := conn.SyscallConn()
	c := &loud{RawConn: raw, conn: conn}
	// The socket itself is looked at when the netpoller is set up to report
	// what comes after; the second time the netpoller is believed.
	c.look = func(fd uintptr) bool {
		c.looks++
		return c.looks > 1 || readable(fd)
	}
	return c, err
}

func (c *loud) Wait() error {
	c.looks = 0
	err := c.Read(c.look)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return c.conn.SetReadDeadline(time.Time{})
	}
	return err
}

func (c *loud) Interrupt() { _ = c.conn.SetReadDeadline(longAgo) }

func (c *loud) Sleep(time.Duration) error { return c.Wait() }

func (*loud) Doze(time.Duration) {}

func (c *loud) Close() error {
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
