package cm

import "github.com/rdmashim/rdmashim/rnic/wire"

// Time is nanoseconds on a monotonic clock of the caller's choice, above 0.
type Time int64

// Duration is nanoseconds.
type Duration int64

// Units of Duration.
const (
	Millisecond Duration = 1_000_000
	Second               = 1000 * Millisecond
)

// Random is a generator of random numbers, such as math/rand/v2's ChaCha8.
type Random interface{ Uint64() uint64 }

// Config is fixed when a manager is made. Zero values are replaced by the
// values of Linux (drivers/infiniband/core/cma.c), with which it interoperates.
type Config struct {
	// Random draws communication identifiers, transactions and PSNs, which no
	// attacker shall guess: a generator whose outputs do not show its state. It
	// must not be nil.
	Random Random
	// PeerLeft, if not nil, is called when the peer's DREQ or DREP ends a
	// connection: the peer's queue pair waits for nothing any more. The
	// connection may have lost its owner before.
	PeerLeft func(own wire.QPN)

	CAGUID  uint64 // the device's node GUID, which tells it from all others
	UDPPort uint16 // where the device receives; 0: 4791

	// MTU is the largest path MTU code that the port can carry, 1 … 5; 0: 5.
	MTU uint8
	// AckDelay is the code of the time that the device takes to acknowledge; 0:
	// 15, as rxe.
	AckDelay uint8
	// PacketLife is the code of a packet's life time on the way; 0: 18. From it
	// follow the local ACK timeout and the length of TIMEWAIT.
	PacketLife wire.CMTimeout

	// ResponseTimeout is the code of the time within which a peer shall answer,
	// on top of twice PacketLife; 0: 20, 4.3 s.
	ResponseTimeout wire.CMTimeout
	// Retries is how many times ResponseTimeout may pass without an answer
	// before the peer is given up, 1 … 15, not counting the first; 0: 15.
	Retries uint8
	// FirstRetry is when a message that was not answered is repeated for the
	// first time; the interval doubles until it is the response timeout. 0: 250
	// ms.
	FirstRetry Duration
	// MRATimeout is the code of the time that an MRA asks for, and the longest
	// that is granted to a peer that asks; 0: 24, 69 s.
	MRATimeout wire.CMTimeout

	// ReplyLife is the time for which a REP waits for a first sign of its
	// receiver: until then the peer may be a made-up address. 0: 4 s, four
	// repeats. Linux waits for the time that the REQ asks for, 103 s.
	ReplyLife Duration

	// MaxRequests is how many requests to one listener may be without the
	// program's answer; a source address may have three quarters of them. 0:
	// 1,024, which is the most that Linux lets wait by default.
	MaxRequests int

	// Grace is the time from 0 in which a request for a service without a
	// listener is dropped and not refused, so that its sender asks again: of a
	// manager that succeeds another, whose listeners are still on their way. 0:
	// not at all.
	Grace Duration

	// Vacancy is the time from the end of a service's last listener in which a
	// request for it, or for its port by the other protocol, is held for 200 ms
	// before it is refused: its program may be about to listen again. 0: not at
	// all.
	Vacancy Duration

	MaxConns  int // connections in any state but those of MaxLinger; 0: 65,536
	MaxLinger int // in TIMEWAIT, and remains of destroyed connections; 0: 4,096
}

func (c Config) withDefaults() Config {
	set(&c.UDPPort, wire.Port)
	set(&c.MTU, 5)
	set(&c.AckDelay, 15)
	set(&c.PacketLife, 18)
	set(&c.ResponseTimeout, 20)
	set(&c.Retries, 15)
	set(&c.FirstRetry, 250*Millisecond)
	set(&c.MRATimeout, 24)
	set(&c.ReplyLife, 4*Second)
	set(&c.MaxRequests, 1024)
	set(&c.MaxConns, 65536)
	set(&c.MaxLinger, 4096)
	c.AckDelay, c.Retries = min(c.AckDelay, 31), min(c.Retries, 15)
	for _, t := range []*wire.CMTimeout{&c.PacketLife, &c.ResponseTimeout, &c.MRATimeout} {
		*t = min(*t, 31)
	}
	return c
}

// set gives *p a value if it has none.
func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// span is a timeout code's time.
func span(t wire.CMTimeout) Duration { return Duration(t.Nanoseconds()) }

// patience is how long an answer is waited for that the peer should give within
// t: the way there and back comes on top (IBA 12.10.2).
func (c *Config) patience(t wire.CMTimeout) Duration { return span(t) + 2*span(c.PacketLife) }

// Silence is the time after which a peer that answers nothing is given up.
func (c Config) Silence() Duration {
	c = c.withDefaults()
	return c.patience(c.ResponseTimeout) * Duration(c.Retries+1)
}

// ackTimeout returns the code of the local ACK timeout for a peer with an ACK
// delay and a path with a packet life time: twice the life time and the delay,
// to the nearest power of two that is not far below (IBA 9.7.6.1.3).
func ackTimeout(delay, life uint8) wire.AckTimeout {
	long, short := max(delay, life+1), min(delay, life+1)
	if long-short <= 1 {
		long++
	}
	return wire.AckTimeout(min(long, 31))
}
