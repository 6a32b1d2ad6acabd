package rnic

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	mrand "math/rand/v2"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/cm"
	"github.com/rdmashim/rdmashim/rnic/engine"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Config describes a device.
type Config struct {
	// Name is the device's name in sysfs, such as "soft0".
	Name string
	// Link carries the packets. The device owns it: Close closes it.
	Link link.Link
	// Near is Link or the link that it stands around, if that reaches devices
	// of this host by a way of its own; or nil.
	Near link.Near
	// MTU is the port's MTU in bytes of payload: 256, 512, 1024, 2048 or 4096;
	// 0 is the largest that fits the link.
	MTU int
	// NoExtensions keeps to the specification with other soft devices, too:
	// queue pairs go back N, and have no private MTU.
	NoExtensions bool
	// GUID is the node's; 0 is a random one.
	GUID uint64
	// Seed makes queue pair numbers, keys, PSNs, communication identifiers and
	// the GUID repeat, for tests. With 0 each is drawn from the system's random
	// source by itself, so that none follows from another, and traffic of a
	// dead process stays away from the next one.
	Seed uint64
	// Logger gets a line for peers that guess remote keys, and messages that
	// wait for a receive; nil for none.
	Logger *slog.Logger
	// Tuning is passed to the queue pairs. A MaxWindow of 0 is chosen after the
	// link's buffers.
	Tuning engine.Tuning
	// PeerPort is the UDP port at which other devices are asked for
	// connections, until they name another; 0 is the device's own.
	PeerPort uint16
	// Announce, if not nil, is called before a service of the communication
	// manager is listened for, without locks; its error is the answer, and end
	// is called when the service has gone.
	Announce func(service uint64) (end func(), err error)
	// CM has the times and limits of the communication manager; New fills in
	// the device's identity.
	CM cm.Config
}

// headRoom is the room in bytes that a packet needs beside its payload, without
// the headers of IPv4 and UDP.
const headRoom = abi.MTUHeadroom - 28

// activeMTU returns the port's MTU for a requested one, 0 being the largest, on
// a link that carries packets of caps.MTU bytes.
func activeMTU(ask int, caps link.Caps) (abi.MTU, error) {
	m, fits := abi.FitMTU(ask), abi.FitMTU(caps.MTU-headRoom)
	switch {
	case ask == 0 && fits == 0:
		return 0, fmt.Errorf("the link's packets hold %d bytes, headers included; the smallest MTU, 256, needs %d: %w", caps.MTU, 256+headRoom, syscall.EINVAL)
	case ask == 0:
		return fits, nil
	case m.Bytes() != ask:
		return 0, fmt.Errorf("mtu %d: must be 256, 512, 1024, 2048 or 4096: %w", ask, syscall.EINVAL)
	case m > fits:
		return 0, fmt.Errorf("mtu %d does not fit the link: its packets hold %d bytes, headers included; choose a smaller one: %w", ask, caps.MTU, syscall.EINVAL)
	}
	return m, nil
}

// PathMTU returns the largest path MTU whose packets fit UDP payloads of room
// bytes, 0 if none does.
func PathMTU(room int) int { return abi.FitMTU(room - headRoom).Bytes() }

// pathMTU returns the path MTU for a peer: the port's, or less if the route to
// the peer carries less. A route that is missing now may exist when packets go.
func (d *Device) pathMTU(peer netip.Addr) abi.MTU {
	room, err := d.link.PathMTU(peer)
	if err != nil {
		return d.mtu
	}
	return max(abi.MTU256, min(d.mtu, abi.FitMTU(room-headRoom)))
}

// privateShare is the least number of the longest packets that a receive buffer
// is to hold. Several peers may send one at a time.
const privateShare = 32

// privateRoom returns how many bytes of UDP payload a packet to a soft device
// may have, for a private MTU. A smaller path MTU than the route's that was
// asked for, of the port or of the connection, counts for it as well: 0. A near
// way has room for any.
func (d *Device) privateRoom(peer netip.Addr, asked abi.MTU, near bool) int {
	room, err := d.link.PathMTU(peer)
	if err != nil || d.askedMTU != 0 || asked < abi.FitMTU(room-headRoom) {
		return 0
	}
	if near {
		return math.MaxUint16
	}
	if room = min(room, d.caps.Longest); d.caps.RecvBuffer > 0 {
		room = min(room, d.caps.RecvBuffer/privateShare)
	}
	return room
}

// tune limits a queue pair's window to the capacity of a socket's buffer: a
// late receiver loses any more, and it is sent again for nothing. The peer's
// buffer is taken to be like ours.
func tune(t engine.Tuning, caps link.Caps) engine.Tuning {
	if t.MaxWindow == 0 && caps.Window > 0 {
		t.MaxWindow = min(max(caps.Window, 2*4096), 1<<20)
		t.LongWindow = max(t.LongWindow, engine.LongWindow)
	}
	if t.AckDelay == 0 {
		t.AckDelay = ackDelay
	}
	return t
}

// pathLimit limits the bytes that all queue pairs of a device have in flight to
// one peer, in the same way: their packets end in one buffer. With a window of
// the caller's choice there is no limit.
func pathLimit(t engine.Tuning, caps link.Caps) int {
	if t.MaxWindow != 0 {
		return 0
	}
	return caps.Window
}

// ackDelay bounds how long an acknowledgement waits to be piggybacked on a
// packet, or for the program to poll once more. It passes only when the program
// is given a message and then neither answers nor asks again.
const ackDelay = 500 * engine.Microsecond

// seeds returns a source of secrets that share nothing: each call draws 32
// bytes from the system. With a seed other than 0 all of them follow from it.
func seeds(seed uint64) func() [32]byte {
	read := rand.Read // never fails
	if seed != 0 {
		var key [32]byte
		binary.LittleEndian.PutUint64(key[:], seed)
		read = mrand.NewChaCha8(key).Read
	}
	return func() (b [32]byte) {
		read(b[:])
		return b
	}
}

// newGUID is a locally administered EUI-64.
func newGUID(random [32]byte) uint64 {
	return binary.LittleEndian.Uint64(random[:])&^(3<<56) | 2<<56
}

// gidOf is the GID of a RoCEv2 address (IBA A17.4): the IPv6 address, or the
// IPv4 address mapped to one.
func gidOf(a netip.Addr) netip.Addr { return netip.AddrFrom16(a.WithZone("").As16()) }

// portLID is the LID that QUERY_PORT reports. RoCE has none (rxe: 0); a soft
// device away from RoCEv2's UDP port has its port here, and MODIFY_QP's dlid
// names the peer's (abi.PathBitsUDP).
func portLID(udp uint16) uint16 {
	if udp == wire.Port {
		return 0
	}
	return udp
}

// peerPort is the UDP port that a dlid names.
func peerPort(dlid uint16) uint16 {
	if dlid == 0 {
		return wire.Port
	}
	return dlid
}
