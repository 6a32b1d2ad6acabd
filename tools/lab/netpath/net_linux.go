package netpath

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/tools/internal/bump"
)

// Path is one direction.
type Path = bump.Path

// Options are the two directions, and the MTU of the interfaces at both ends; 0
// means bump.DefaultMTU. A path whose MTU is less swallows longer packets.
type Options struct {
	AB, BA Path
	MTU    int
	// Straight joins the ends by one veth pair, without a bridge: packets keep
	// the kernel's segmentation offload, and nothing spoils them. AB and BA
	// must be zero, and SetPaths, Counts and Await must not be called.
	Straight bool
}

// Net is two network namespaces and the path between them.
type Net struct {
	A, B   *End
	bridge *bump.Bridge
}

// End is one of the two namespaces. It has an interface "eth0" with an address
// of each family, which no other Net of the process has, and a "lo" that is up.
type End struct {
	Addr4, Addr6 netip.Addr
	space        *Namespace
}

// Do calls f on a thread in the end's namespace, one call at a time. Sockets
// that f makes belong there for good, and so do processes that it starts.
// Goroutines that f starts run elsewhere.
func (e *End) Do(f func() error) error { return e.space.Do(f) }

// nets numbers the networks of this process.
var nets atomic.Uint32

// New makes a network. The error Is EPERM, and says what would help, where
// network namespaces are not allowed.
func New(o Options) (n *Net, err error) {
	number := nets.Add(1)
	n = &Net{}
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if o.MTU == 0 {
		o.MTU = bump.DefaultMTU
	}
	var ends [2]*End
	for i := range ends {
		e := &End{
			Addr4: netip.AddrFrom4([4]byte{10, 64 + byte(number>>8)&63, byte(number), byte(1 + i)}),
			Addr6: netip.AddrFrom16([16]byte{0: 0xfd, 5: 0x77, 6: byte(number >> 8), 7: byte(number), 15: byte(1 + i)}),
		}
		if e.space, err = NewNamespace(); err != nil {
			return n, err
		}
		ends[i] = e
		if i == 0 {
			n.A = e
		} else {
			n.B = e
		}
	}
	if o.Straight {
		err = n.A.Do(func() error { return join(1, endName, n.B.space.FD, o.MTU) })
	} else {
		err = n.span(ends, o)
	}
	if err != nil {
		return n, err
	}
	for i, e := range ends {
		if err = e.Do(func() error { return configure(i, e, ends[1-i], !o.Straight) }); err != nil {
			return n, err
		}
	}
	for _, e := range ends {
		if err = e.Do(e.awaitReady); err != nil {
			return n, err
		}
	}
	if n.bridge != nil {
		n.bridge.Start()
	}
	return n, nil
}

// span lays a bridge between the ends.
func (n *Net) span(ends [2]*End, o Options) error {
	middle, err := NewNamespace()
	if err != nil {
		return err
	}
	defer middle.Close() // the bridge's sockets keep it
	var sockets [2]int
	return middle.Do(func() error {
		for i := range ends {
			if sockets[i], err = lay(i, ends[i].space.FD, o.MTU); err != nil {
				if i == 1 {
					unix.Close(sockets[0])
				}
				return err
			}
		}
		n.bridge, err = bump.New(sockets, bump.Options{Paths: [2]Path{o.AB, o.BA}, Unicast: true})
		return err
	})
}

// SetPaths changes both directions for packets to come.
func (n *Net) SetPaths(ab, ba Path) {
	n.bridge.SetPath(0, ab)
	n.bridge.SetPath(1, ba)
}

// Counts tell what was done to packets from A to B, and from B to A.
func (n *Net) Counts() (ab, ba bump.Counts) {
	ab, _ = n.bridge.Count(0)
	ba, _ = n.bridge.Count(1)
	return ab, ba
}

// Await returns when done says so of the counts, or with ctx's error. One
// caller waits at a time.
func (n *Net) Await(ctx context.Context, done func(ab, ba bump.Counts) bool) error {
	for !done(n.Counts()) {
		select {
		case <-n.bridge.Moved():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends the network; packets on their way vanish. Sockets in the
// namespaces remain, without an interface.
func (n *Net) Close() error {
	var err error
	if n.bridge != nil {
		err = n.bridge.Close()
	}
	for _, e := range []*End{n.A, n.B} {
		if e != nil && e.space != nil {
			e.space.Close()
		}
	}
	return err
}

const endName = "eth0"

// hardware is the Ethernet address of an end's interface.
func hardware(i int) net.HardwareAddr { return net.HardwareAddr{2, 0, 0, 0, 0, byte(0xa + i)} }

// join makes a veth pair between the caller's namespace, where it has a name,
// and another, where it is end i's interface.
func join(i int, name string, to, mtu int) error {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	if name == endName {
		a.HardwareAddr = hardware(1 - i)
	}
	v := &netlink.Veth{LinkAttrs: a, PeerName: endName, PeerHardwareAddr: hardware(i), PeerNamespace: netlink.NsFd(to), PeerMTU: uint32(mtu)}
	if err := netlink.LinkAdd(v); err != nil {
		return fmt.Errorf("make a veth pair: %w", err)
	}
	return nil
}

// lay joins the caller's namespace to end i and returns a packet socket on its
// side.
func lay(i, to, mtu int) (socket int, err error) {
	name := fmt.Sprintf("bridge%d", i)
	if err := join(i, name, to, mtu); err != nil {
		return -1, err
	}
	l, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkSetUp(l)
	}
	if err != nil {
		return -1, err
	}
	return bump.Listen(l.Attrs().Index, false)
}

// readyPatience bounds the wait for an interface that was brought up.
const readyPatience = 10 * time.Second

// awaitReady returns when the end's interface sends and receives. The kernel
// does two things some time after it was told to: it notices that the interface
// has a carrier, until when what is sent vanishes (link_watch.c), and it enters
// the route to its own IPv6 address, until when what is received does
// (addrconf.c: addrconf_dad_work).
func (e *End) awaitReady() error {
	for deadline := time.Now().Add(readyPatience); ; time.Sleep(time.Millisecond) {
		l, err := netlink.LinkByName(endName)
		if err != nil {
			return err
		}
		routes, err := netlink.RouteGet(e.Addr6.AsSlice())
		local := err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
		if local && l.Attrs().OperState == netlink.OperUp {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s is %v after %v, and the route to its own %v: %v, %v", endName, l.Attrs().OperState, readyPatience, e.Addr6, routes, err)
		}
	}
}

// configure brings an end up. The other one is entered as its neighbour, so
// that no ARP or neighbour discovery meets the path's faults.
func configure(i int, e, other *End, bridged bool) error {
	for _, name := range []string{"lo", endName} {
		l, err := netlink.LinkByName(name)
		if err == nil && name == endName && bridged {
			// A frame is a packet: segment before the interface
			// (gso_features_check in net/core/dev.c).
			err = netlink.LinkSetGSOMaxSegs(l, 1)
		}
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			return fmt.Errorf("bring %s up: %w", name, err)
		}
	}
	l, err := netlink.LinkByName(endName)
	if err != nil {
		return err
	}
	for _, at := range []struct {
		own, other netip.Addr
		bits       int
	}{{e.Addr4, other.Addr4, 24}, {e.Addr6, other.Addr6, 64}} {
		ipnet := &net.IPNet{IP: at.own.AsSlice(), Mask: net.CIDRMask(at.bits, at.own.BitLen())}
		err := netlink.AddrAdd(l, &netlink.Addr{IPNet: ipnet, Flags: unix.IFA_F_NODAD}) // no other host is there
		if err == nil {
			err = netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: at.other.AsSlice(), HardwareAddr: hardware(1 - i)})
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give %s the address %s: %w", endName, at.own, err)
		}
	}
	return nil
}
