package link

import (
	"net/netip"
	"reflect"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// Packet is what a Link carries.
type Packet = wire.Datagram

// Caps holds a link's address, interface and abilities.
type Caps struct {
	// Local is the address that the link answers on.
	Local netip.AddrPort
	// MTU is the largest UDP payload in bytes that leaves in one packet,
	// ICRC included: the interface's MTU without IP and UDP headers.
	MTU int
	// Longest is the largest UDP payload in bytes that Recv takes, ICRC
	// included: MTU at least holds for the specification's path MTUs, this for
	// private ones.
	Longest int
	// BatchSize is how many packets one Send and one Recv move at best.
	BatchSize int

	// Inside says that all peers are in this process.
	Inside bool
	// Lossless says that packets are lost nowhere but where a peer leaves its
	// buffer full.
	Lossless bool

	// NetDev and IfIndex name the network interface that holds Local; empty
	// and 0 where there is none.
	NetDev  string
	IfIndex int
	// RecvBuffer is the bytes of memory that were granted for packets on their
	// way here; 0 where that means nothing. Window is how many bytes of packets
	// find room in it, as the system charges them.
	RecvBuffer, Window int
}

// Link carries packets. Send, Recv and Wait may run at the same time; each is
// called by one goroutine at a time. Close may be called from anywhere.
type Link interface {
	// Send finishes the packets and sends them in order. The packets' memory
	// may be reused when it returns. Packets that cannot be sent are counted
	// and dropped, as on a wire; an error means that the link is gone.
	Send(batch []Packet) error

	// Recv stores up to len(batch) of the packets that are there; 0 when there
	// are none: it does not block. Packets whose ICRC is wrong are counted and
	// dropped. The packets are valid until the next Recv. After Close it
	// returns an error that Is net.ErrClosed.
	Recv(batch []Packet) (int, error)

	// Wait blocks until Recv may find packets; it may also return when there
	// are none. Packets that came before the call, and that no Recv has taken,
	// end it at once. The waiter may be another goroutine than the receiver: a
	// Recv while a Wait blocks is allowed. After Close it returns an error that
	// Is net.ErrClosed.
	Wait() error

	// Interrupt lets a Wait that blocks return, or else the next one. It may
	// be called from anywhere, and after Close.
	Interrupt()

	// Sleep blocks the calling thread until Recv may find packets, but no
	// longer than d: a packet then costs one wake-up, and no work of the
	// netpoller. With waits an Interrupt ends it as it does a Wait. Without,
	// that is left to the goroutine that waits, and the error is nil. Where a
	// thread cannot sleep it is Wait with waits, and returns at once without.
	Sleep(d time.Duration, waits bool) error

	// Join begins to receive what is sent to an IP multicast group, at the
	// link's own UDP port. Such a packet says its Group. A packet whose Peer is
	// a group reaches every link that has joined it there, the sender's too.
	// Joining twice is once.
	Join(group netip.Addr) error
	// Leave ends it. Packets that came before may still be handed out.
	Leave(group netip.Addr)

	// PathMTU is Caps.MTU for packets to one peer, as far as this machine
	// knows: the route's MTU may be smaller than the interface's. An error
	// says that there is no route.
	PathMTU(peer netip.Addr) (int, error)
	// Reach returns nil if packets can leave for a peer, as far as this machine
	// knows. The errors are those of the kernel's devices
	// (drivers/infiniband/core/addr.c): ENETUNREACH or EHOSTUNREACH without a
	// route by the interface that has the link's address, ENODEV if that is
	// down, ETIMEDOUT if the next hop does not answer within patience; with 0
	// it is not asked. Reach does not block for longer.
	Reach(peer netip.Addr, patience time.Duration) error

	// SetUndelivered sets the function that receives the reports of packets
	// that were not delivered, and SetTap the link's only tap. Both precede the
	// first Send and Recv, whose goroutines call the function: it must neither
	// block nor keep Head. A packet may be lost without a report.
	SetUndelivered(func(Undelivered))
	SetTap(Tap)

	Caps() Caps

	// Counters adds the link's counters, each with its name, to dst.
	Counters(dst []Counter) []Counter

	// Close ends the link and wakes a blocked Wait. It is idempotent.
	Close() error
}

// Undelivered is a packet that has not reached its peer, as the network
// (ICMP) or this host's system says.
type Undelivered struct {
	Peer netip.AddrPort // where it was sent
	// Why is ECONNREFUSED when no socket has the peer's UDP port, EHOSTUNREACH
	// or ENETUNREACH when no way leads to it, EPERM when this host's system
	// does not let the packet leave.
	Why syscall.Errno
	// Head is the packet's beginning, from the BTH on, as much of it as was
	// returned. ICMP is not authenticated: without the secrets that a packet
	// carries, any host may have made it up.
	Head []byte
}

// Receive is Recv that waits for at least one packet.
func Receive(l Link, batch []Packet) (int, error) {
	for {
		if n, err := l.Recv(batch); n > 0 || err != nil || len(batch) == 0 {
			return n, err
		}
		if err := l.Wait(); err != nil {
			return 0, err
		}
	}
}

// Counter is a named count that only grows, as it appears below the port's
// hw_counters directory.
type Counter struct {
	Name  string
	Value uint64
}

// AppendCounters appends the counters of *c, a struct of atomic.Uint64s whose
// tags have the names.
func AppendCounters(dst []Counter, c any) []Counter {
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		n := v.Field(i).Addr().Interface().(*atomic.Uint64)
		dst = append(dst, Counter{v.Type().Field(i).Tag.Get("name"), n.Load()})
	}
	return dst
}
