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
	// Lossless says that packets are lost nowhere but where a peer leaves its
	// buffer full.
	Lossless bool

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

// Sleeper is a Link on which a thread can sleep.
type Sleeper interface {
	Link
	// Sleep blocks the calling thread until Recv may find packets, but no
	// longer than d. With waits it is a Wait that begins so: a packet then
	// costs one wake-up, and no work of the netpoller. Without, an Interrupt is
	// left to the goroutine that waits, and the error is nil.
	Sleep(d time.Duration, waits bool) error
}

// Sleep is l's Sleep. Where there is none it is Wait with waits, and returns at
// once without.
func Sleep(l Link, d time.Duration, waits bool) error {
	if s, ok := l.(Sleeper); ok {
		return s.Sleep(d, waits)
	}
	if waits {
		return l.Wait()
	}
	return nil
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
