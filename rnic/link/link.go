package link

import (
	"net/netip"
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

	// NetDev and IfIndex name the network interface that holds Local; empty
	// and 0 where there is none.
	NetDev  string
	IfIndex int
	// SendBuffer and RecvBuffer are the bytes of memory that were granted for
	// packets on their way; 0 where that means nothing. Linux charges about
	// two bytes for each byte of payload.
	SendBuffer, RecvBuffer int
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

	Caps() Caps

	// Counters adds the link's counters, each with its name, to dst.
	Counters(dst []Counter) []Counter

	// Close ends the link and wakes a blocked Wait. It is idempotent.
	Close() error
}

// Quieter is a Link that can be told that no Wait will come for a while.
type Quieter interface {
	Link
	// Quiet ends the watch that the last Wait began, which may cost something
	// with each packet. The waiter calls it; the next Wait begins anew.
	Quiet()
}

// Quiet tells l that there will be no Wait for a while, if it wants to know.
func Quiet(l Link) {
	if q, ok := l.(Quieter); ok {
		q.Quiet()
	}
}

// Sleeper is a Link that can wait with a sleeping thread.
type Sleeper interface {
	Link
	// Sleep is Wait, but for so long the calling thread sleeps on the socket
	// itself. A packet then costs one wake-up, and no work of the netpoller.
	Sleep(d time.Duration) error
}

// Sleep is l's Sleep, or Wait.
func Sleep(l Link, d time.Duration) error {
	if s, ok := l.(Sleeper); ok {
		return s.Sleep(d)
	}
	return l.Wait()
}

// Dozer is a Link on which a thread can sleep for a moment.
type Dozer interface {
	Link
	// Doze blocks the calling thread until Recv may find packets, but no longer
	// than d.
	Doze(d time.Duration)
}

// Doze sleeps until l may have packets, but no longer than d; not at all where
// that cannot be done.
func Doze(l Link, d time.Duration) {
	if z, ok := l.(Dozer); ok {
		z.Doze(d)
	}
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
