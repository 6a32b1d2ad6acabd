package shm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

// The layout of a ring in its memory: three words on cache lines of their own,
// apart by two for the prefetcher, and the records.
//
// Indices are counts of bytes since the ring was made; their place is the index
// modulo the room. A record is eight bytes of header, little-endian, and its
// packet, filled up to a multiple of eight bytes:
//
//	0  u32  length of what follows
//	4  u32  flags: sealed, referenced
//
// The packet is BTH, extended headers, payload and pad. Of one that is
// referenced the payload lies in an arena of the producer, and the record holds
//
//	 8  u64  state of the payload: wire.Ready …
//	16  u64  number of the arena
//	24  u64  offset of the payload in the arena
//	32  u32  length of the payload
//	36  u32  0
//	40  BTH and extended headers
const (
	tailAt   = 0   // the producer's index: behind the last record
	headAt   = 128 // the consumer's index: the first record not taken
	asleepAt = 256 // 1: the consumer sleeps, and wants its bell rung
	dataAt   = 4096

	// room is the number of bytes for records, a power of two.
	room       = 1 << 20
	memorySize = dataAt + room

	// piece is how many bytes of payload a producer or consumer has at hand
	// before it shows the other end: one that fills or empties the whole ring
	// meanwhile moves a third as much, since its peer waits, and through colder
	// caches.
	piece = 128 << 10

	headerLen = 8
	minPacket = wire.BTHLen
	// maxPacket holds the largest packet: a private MTU of payload and at most
	// 72 of headers, pad and ICRC.
	maxPacket = wire.MaxPrivateMTU + 128

	refLen     = 32  // between the header of a record and those of its packet
	maxHeaders = 128 // of a packet
)

// Flags of a record.
const (
	sealed     uint32 = 1 // the packet ends with its ICRC, which the receiver checks
	referenced uint32 = 2 // the payload lies in an arena
)

var (
	errIndex  = errors.New("the peer's index is outside of the ring")
	errRecord = errors.New("a record is none")
	errFull   = errors.New("the ring is full")
	errGone   = errors.New("the payload's memory is not there any more")
)

// producer writes a ring's records. It never believes the consumer further than
// the ring is long, nor back. tail-room ≤ head ≤ published ≤ tail.
type producer struct {
	mem       []byte
	data      []byte
	tail      uint64
	published uint64 // the tail that the consumer was shown
	head      uint64 // the consumer's index when it was read last
}

func newProducer(mem []byte) *producer {
	return &producer{mem: mem, data: mem[dataAt:memorySize]}
}

// put writes a record of the parts, which the consumer sees after publish.
// errFull when it has no room, errIndex when the consumer's index is wrong.
func (p *producer) put(flags uint32, head, payload, trailer []byte) error {
	n := len(head) + len(payload) + len(trailer)
	if err := p.fit(n); err != nil {
		return err
	}
	at := p.begin(n, flags)
	for _, part := range [...][]byte{head, payload, trailer} {
		at %= room
		k := min(len(part), int(room-at))
		copyBytes(p.data[at:], part[:k])
		copyBytes(p.data, part[k:])
		at += uint64(len(part))
	}
	p.tail += recordSize(n)
	return nil
}

// putRef is put for a payload of n bytes in an arena. It returns the record's
// index.
func (p *producer) putRef(head []byte, arena, offset uint64, n int) (index uint64, err error) {
	if err := p.fit(refLen + len(head)); err != nil {
		return 0, err
	}
	at := p.begin(refLen+len(head), referenced)
	p.state(p.tail).Store(wire.Ready)
	binary.LittleEndian.PutUint64(p.data[(at+8)%room:], arena)
	binary.LittleEndian.PutUint64(p.data[(at+16)%room:], offset)
	binary.LittleEndian.PutUint64(p.data[(at+24)%room:], uint64(n))
	at = (at + refLen) % room
	k := copy(p.data[at:], head)
	copy(p.data, head[k:])
	index = p.tail
	p.tail += recordSize(refLen + len(head))
	return index, nil
}

// fit looks for room for a record of n bytes.
func (p *producer) fit(n int) error {
	size := recordSize(n)
	if p.tail+size-p.head <= room {
		return nil
	}
	if err := p.look(); err != nil {
		return err
	}
	if p.tail+size-p.head > room {
		return errFull
	}
	return nil
}

// begin writes a record's header, and returns where it goes on.
func (p *producer) begin(n int, flags uint32) (at uint64) {
	at = p.tail % room // a multiple of eight: a header is in one piece
	binary.LittleEndian.PutUint32(p.data[at:], uint32(n))
	binary.LittleEndian.PutUint32(p.data[at+4:], flags)
	return at + headerLen
}

// state is the state word of the record at an index that is referenced.
func (p *producer) state(index uint64) *atomic.Uint64 {
	return word(p.data, int((index+headerLen)%room))
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
// the caller wakes it. The order loses no wake-up: first publish, then look at
// asleep.
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
	released uint64 // the head that the producer was shown
	tail     uint64 // the producer's index when it was read last
}

func newConsumer(mem []byte) *consumer {
	return &consumer{mem: mem, data: mem[dataAt:memorySize]}
}

// record is one that was taken. It lies in the ring, where the producer may
// still change it, until release.
type record struct {
	flags uint32
	parts [2][]byte // the packet, or its headers: a record may go around the end

	state     *atomic.Uint64 // of a payload that is referenced, which is
	arena     uint64         // in this arena
	offset, n uint64         // from offset on, n bytes
}

func (r *record) len() int { return len(r.parts[0]) + len(r.parts[1]) }

// appendTo appends what the record holds of its packet.
func (r *record) appendTo(b []byte) []byte { return append(append(b, r.parts[0]...), r.parts[1]...) }

// next takes the next record; ok is false when there is none. After errIndex
// and errRecord the ring is of no use.
func (c *consumer) next(r *record) (ok bool, err error) {
	if c.head == c.tail {
		tail := word(c.mem, tailAt).Load()
		if tail == c.head {
			return false, nil
		}
		if tail-c.head > room || tail%8 != 0 {
			return false, errIndex
		}
		c.tail = tail
	}
	at := c.head % room
	header := [headerLen]byte(c.data[at:]) // the producer may still change it
	n, flags := uint64(binary.LittleEndian.Uint32(header[:])), binary.LittleEndian.Uint32(header[4:])
	least, most := uint64(minPacket), uint64(maxPacket)
	if flags == referenced {
		least, most = refLen+minPacket, refLen+maxHeaders
	}
	if n < least || n > most || recordSize(int(n)) > c.tail-c.head || flags&^sealed != 0 && flags != referenced {
		return false, fmt.Errorf("%w: length %d, flags %#x", errRecord, n, flags)
	}
	c.head += recordSize(int(n))
	*r = record{flags: flags}
	at += headerLen
	if flags == referenced {
		r.state = word(c.data, int(at%room))
		r.arena = binary.LittleEndian.Uint64(c.data[(at+8)%room:])
		r.offset = binary.LittleEndian.Uint64(c.data[(at+16)%room:])
		r.n = binary.LittleEndian.Uint64(c.data[(at+24)%room:])
		at, n = at+refLen, n-refLen
	}
	at %= room
	first := min(n, room-at)
	r.parts = [2][]byte{c.data[at : at+first : at+first], c.data[: n-first : n-first]}
	return true, nil
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

// recordSize is the room that a packet of n bytes takes.
func recordSize(n int) uint64 { return uint64(headerLen+n+7) &^ 7 }
