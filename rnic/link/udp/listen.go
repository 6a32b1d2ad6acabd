package udp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/link/udp/ports"
)

// DefaultBuffer is the size of socket buffers asked for when Options names
// none.
const DefaultBuffer = 4 << 20

// Options are Listen's. The zero value gives the defaults.
type Options struct {
	// Buffer is the size in bytes of the socket's send and of its receive
	// buffer to ask for; 0 is DefaultBuffer. The system may grant less
	// (Linux: net.core.rmem_max and wmem_max, unless the process has
	// CAP_NET_ADMIN), which Caps tells.
	Buffer int

	// NoGSO and NoGRO turn segmentation offload off: every packet is then a
	// datagram of its own for the kernel, when it is sent or received. They
	// are used where the kernel has them (Linux 4.18 and 5.0).
	NoGSO, NoGRO bool
}

// offload says which segmentation offload is used.
type offload struct{ gso, gro bool }

// Listen binds a UDP socket to local, a concrete address of this machine, and
// returns the link on it. Port 0 takes any free port; RoCEv2 peers expect 4791.
//
// An address or port in use is an error that Is syscall.EADDRINUSE, an address
// that no interface has EADDRNOTAVAIL, an unspecified address EINVAL (the ICRC
// covers the address, so it must be known), a system on which RoCEv2 datagrams
// cannot be sent ENOTSUP.
func Listen(local netip.AddrPort, o Options) (link.Link, error) {
	addr := local.Addr().Unmap()
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsMulticast() {
		return nil, fmt.Errorf("udp: listen on %v: a concrete address of this machine is needed, because the ICRC of every packet covers it: %w", local, syscall.EINVAL)
	}
	if o.Buffer == 0 {
		o.Buffer = DefaultBuffer
	}
	family := "udp6"
	if addr.Is4() {
		family = "udp4"
	}
	var got granted
	lc := net.ListenConfig{Control: func(_, _ string, rc syscall.RawConn) error {
		var err error
		return errors.Join(rc.Control(func(fd uintptr) { got, err = setOptions(fd, addr.Is4(), o) }), err)
	}}
	pc, err := lc.ListenPacket(context.Background(), family, netip.AddrPortFrom(addr, local.Port()).String())
	if err != nil {
		return nil, explain(local, err)
	}
	sock := pc.(*net.UDPConn)
	l, err := newLink(sock, got)
	if err != nil {
		sock.Close()
		return nil, fmt.Errorf("udp: listen on %v: %w", local, err)
	}
	return l, nil
}

// explain adds to an error of Listen its meaning.
func explain(local netip.AddrPort, err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		err = errno // the rest is said here
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return &takenError{local}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("udp: listen on %v: no interface of this machine has the address: %w", local, err)
	}
	return fmt.Errorf("udp: listen on %v: %w", local, err)
}

// takenError is EADDRINUSE. Its text names the holder, for which all processes
// are looked through when the text is asked for: a device that tries one
// address after the other does not ask.
type takenError struct{ local netip.AddrPort }

func (e *takenError) Error() string {
	holder := cmp.Or(ports.Holder(os.DirFS("/"), e.local), "likely a loaded rdma_rxe or another soft device")
	return fmt.Sprintf("udp: listen on %v: the address is taken by %s: use another address of this machine, a free port (port=0, between soft devices only), or end the holder (rxe: rmmod rdma_rxe): %v", e.local, holder, e.Unwrap())
}

func (e *takenError) Unwrap() error { return syscall.EADDRINUSE }

// granted holds the socket's grants: bytes of its receive buffer, and offloads.
type granted struct {
	recv    int
	offload offload
}

// window is how many bytes of packets the receive buffer holds, with the 256
// that a requester counts for each (engine.Tuning). Linux charges merged ones
// with no more than that, others with up to twice as much.
func (g granted) window() int {
	if g.offload.gso && g.offload.gro { // so are the peer's, as a rule
		return g.recv / 8 * 7
	}
	return g.recv / 32 * 15
}
