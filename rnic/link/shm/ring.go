package shm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The layout of a ring in its memory: three words on cache lines of their own,
// apart by two for the prefetcher, and the records.
//
// Indices are counts of bytes since the ring was made; their place is the index
// modulo the room. A record is eight bytes of header, little-endian, and its
// packet, filled up to a multiple of eight bytes:
//
//	0  u32  length of the packet: BTH, extended headers, payload, pad
//	4  u32  flags: sealed
const (
	tailAt   = 0   // the producer's index: behind the last record
	headAt   = 128 // the consumer's index: the first record not taken
	asleepAt = 256 // 1: the consumer sleeps, and wants its eventfd written
	dataAt   = 4096

	// room is the number of bytes for records, a power of two.
	room       = 1 << 20
	memorySize = dataAt + room

	headerLen = 8
	minPacket = wire.BTHLen
	// maxPacket holds the largest packet: a private MTU of payload and at most
	// 72 of headers, pad and ICRC. Most hold a path MTU.
	maxPacket  = wire.MaxPrivateMTU + 128
	pathPacket = 4096 + 128
)

// sealed says that the packet ends with its ICRC, which the receiver checks.
const sealed uint32 = 1

var (
	errIndex  = errors.New("the peer's index is outside of the ring")
	errRecord = errors.New("a record is none")
	errFull   = errors.New("the ring is full")
)

// producer writes a ring's records. It never believes the consumer further than
// the ring is long, nor back. tail-room ≤ head ≤ published ≤ tail.
type producer struct {
	mem       []byte
	data      []byte
	tail      uint64
	published uint64 // the tail that the consumer was told
	head      uint64 // the consumer's index when it was read last
}

func newProducer(mem []byte) *producer {
	return &producer{mem: mem, data: mem[dataAt:memorySize]}
}

// put writes a record of the parts, which the consumer sees after publish.
// errFull when it has no room, errIndex when the consumer's index is wrong.
func (p *producer) put(flags uint32, head, payload, trailer []byte) error {
	n := len(head) + len(payload) + len(trailer)
	size := recordSize(n)
	if p.tail+size-p.head > room {
		if err := p.look(); err != nil {
			return err
		}
		if p.tail+size-p.head > room {
			return errFull
		}
	}
	at := p.tail % room // a multiple of eight: a header is in one piece
	binary.LittleEndian.PutUint32(p.data[at:], uint32(n))
	binary.LittleEndian.PutUint32(p.data[at+4:], flags)
	at += headerLen
	for _, part := range [...][]byte{head, payload, trailer} {
		at %= room
		k := copy(p.data[at:], part)
		copy(p.data, part[k:])
		at += uint64(len(part))
	}
	p.tail += size
	return nil
}

// look reads the consumer's index, which only grows.
func (p *producer) look() error {
	head := word(p.mem, headAt).Load()
	if head-p.head > p.published-p.head || head%8 != 0 {
		return errIndex
	}
	p.head = head
	return nil
}

// publish shows the consumer all records, and reports whether it sleeps: then
// the caller wakes it. The order is what loses no wake-up: first publish, then
// look at asleep.
func (p *producer) publish() (wake bool) {
	if p.tail == p.published {
		return false
	}
	p.published = p.tail
	word(p.mem, tailAt).Store(p.tail)
	asleep := word(p.mem, asleepAt)
	return asleep.Load() != 0 && asleep.Swap(0) != 0
}

// consumer takes a ring's records. It never reads its own index from the ring,
// and reads the producer's once for many records. tail-room ≤ head ≤ tail.
type consumer struct {
	mem      []byte
	data     []byte
	head     uint64
	released uint64 // the head that the producer was told
	tail     uint64 // the producer's index when it was read last
}

func newConsumer(mem []byte) *consumer {
	return &consumer{mem: mem, data: mem[dataAt:memorySize]}
}

// next appends the next record's packet to buf; ok is false when there is none.
// After errIndex and errRecord the ring is of no use.
func (c *consumer) next(buf []byte) (packet []byte, flags uint32, ok bool, err error) {
	if c.head == c.tail {
		tail := word(c.mem, tailAt).Load()
		if tail == c.head {
			return nil, 0, false, nil
		}
		if tail-c.head > room || tail%8 != 0 {
			return nil, 0, false, errIndex
		}
		c.tail = tail
	}
	at := c.head % room
	header := [headerLen]byte(c.data[at:]) // the producer may still change it
	n, flags := binary.LittleEndian.Uint32(header[:]), binary.LittleEndian.Uint32(header[4:])
	if n < minPacket || n > maxPacket || recordSize(int(n)) > c.tail-c.head || flags&^sealed != 0 {
		return nil, 0, false, fmt.Errorf("%w: length %d, flags %#x", errRecord, n, flags)
	}
	from := (at + headerLen) % room
	first := min(uint64(n), room-from)
	start := len(buf)
	buf = append(buf, c.data[from:from+first]...)
	buf = append(buf, c.data[:uint64(n)-first]...)
	c.head += recordSize(int(n))
	return buf[start:len(buf):len(buf)], flags, true, nil
}

// release gives the producer the room of the records taken.
func (c *consumer) release() {
	if c.released != c.head {
		c.released = c.head
		word(c.mem, headAt).Store(c.head)
	}
}

// empty reports whether there is no record.
func (c *consumer) empty() bool {
	return c.head == c.tail && word(c.mem, tailAt).Load() == c.head
}

// sleep asks the producer for a wake-up with its next record. The caller looks
// at empty afterwards. awake takes it back.
func (c *consumer) sleep() { word(c.mem, asleepAt).Store(1) }
func (c *consumer) awake() { word(c.mem, asleepAt).Store(0) }

// sleepAll sets the asleep words of all rings, then looks at all of them. It
// reports whether a ring has a record: the caller does not sleep then, and
// takes the words back.
func sleepAll(rings []*consumer) (found bool) {
	for _, c := range rings {
		c.sleep()
	}
	for _, c := range rings {
		if !c.empty() {
			return true
		}
	}
	return false
}

func awakeAll(rings []*consumer) {
	for _, c := range rings {
		c.awake()
	}
}

// recordSize is the room that a packet of n bytes takes.
func recordSize(n int) uint64 { return uint64(headerLen+n+7) &^ 7 }
