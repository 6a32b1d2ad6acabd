//go:build !linux

package rawudp

import (
	"fmt"
	"net/netip"
	"runtime"
	"syscall"
)

// Sender is the socket and the memory of the side that sends.
type Sender struct{}

// Receiver is the other side's.
type Receiver struct{}

func refuse() error {
	return fmt.Errorf("rawudp: GSO is not known on %s: %w", runtime.GOOS, syscall.ENOTSUP)
}

// NewSender refuses: this system has no GSO.
func NewSender(int, netip.AddrPort) (*Sender, error) { return nil, refuse() }

// NewReceiver refuses, too.
func NewReceiver(int) (*Receiver, error) { return nil, refuse() }

func (*Sender) Close() error   { return nil }
func (*Sender) Move(int) error { return refuse() }

func (*Receiver) Close() error         { return nil }
func (*Receiver) Addr() netip.AddrPort { return netip.AddrPort{} }
func (*Receiver) Serve() error         { return refuse() }
