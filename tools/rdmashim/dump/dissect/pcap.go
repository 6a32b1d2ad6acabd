package dissect

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// maxRecord bounds a record's bytes. libpcap takes 256 KiB of most link types.
const maxRecord = 1 << 20

// pcapRecords reads a classic file: a header of 24 bytes, and before each
// record one of 16 (draft-ietf-opsawg-pcap).
type pcapRecords struct {
	r     *bufio.Reader
	order binary.ByteOrder
	unit  int64 // of fractions of a second, in ns
	kind  int
	buf   []byte
}

func newPcap(r *bufio.Reader) (*pcapRecords, error) {
	head := make([]byte, 24)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	f := &pcapRecords{r: r, order: binary.LittleEndian}
	magic := f.order.Uint32(head)
	if magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1 {
		f.order = binary.BigEndian
		magic = f.order.Uint32(head)
	}
	switch magic {
	case 0xa1b2c3d4:
		f.unit = 1000
	case 0xa1b23c4d:
		f.unit = 1
	default:
		return nil, fmt.Errorf("it begins with %#x", magic)
	}
	if major, minor := f.order.Uint16(head[4:]), f.order.Uint16(head[6:]); major != 2 || minor != 4 {
		return nil, fmt.Errorf("version %d.%d, not 2.4", major, minor)
	}
	f.kind = int(f.order.Uint32(head[20:]) & 0xffff) // above: the frame check sequence's length
	return f, nil
}

// Next returns the next record. One that claims to be longer than the frame was
// is the frame, as libpcap has it.
func (f *pcapRecords) Next() (rec Record, err error) {
	var head [16]byte
	if _, err = io.ReadFull(f.r, head[:]); err != nil {
		return rec, err
	}
	n := f.order.Uint32(head[8:])
	if n > maxRecord {
		return rec, tooLong(n)
	}
	if cap(f.buf) < int(n) {
		f.buf = make([]byte, n)
	}
	rec.Data = f.buf[:n]
	if _, err = io.ReadFull(f.r, rec.Data); err != nil {
		return rec, noEOF(err)
	}
	rec.Length = max(int(n), int(f.order.Uint32(head[12:])&(1<<31-1)))
	rec.Time = time.Unix(int64(f.order.Uint32(head[:])), int64(f.order.Uint32(head[4:]))*f.unit).UTC()
	rec.LinkType = f.kind
	return rec, nil
}

func tooLong(n uint32) error {
	return fmt.Errorf("a record of %d bytes; %d are the most", n, maxRecord)
}

// blocks hands on the blocks of a pcapng file, each when all of it is there,
// and ends where one is too long, or a record longer than its block, since
// pcapgo reads as far as a record says (draft-ietf-opsawg-pcapng).
type blocks struct {
	r     *bufio.Reader
	order binary.ByteOrder
	buf   []byte
	left  []byte // of buf, to be read
}

// maxBlock is a record and its options.
const maxBlock = maxRecord + 64<<10

const (
	blockSection  = 0x0a0d0d0a
	blockPacket   = 2 // obsolete
	blockSimple   = 3
	blockEnhanced = 6
)

func (b *blocks) Read(p []byte) (n int, err error) {
	if len(b.left) == 0 {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n = copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// next reads a block. A last one that is cut is handed on as it is.
func (b *blocks) next() error {
	head, err := b.r.Peek(12)
	if len(head) < 12 {
		if len(head) == 0 {
			return err
		}
		b.left = append(b.buf[:0], head...)
		_, _ = b.r.Discard(len(head))
		return nil
	}
	if binary.LittleEndian.Uint32(head) == blockSection { // in either order
		b.order = binary.LittleEndian
		if binary.BigEndian.Uint32(head[8:]) == 0x1a2b3c4d {
			b.order = binary.BigEndian
		}
	}
	kind, n := b.order.Uint32(head), b.order.Uint32(head[4:])
	if n < 12 || n%4 != 0 {
		return fmt.Errorf("a block of %d bytes", n)
	}
	if n > maxBlock {
		return tooLong(n)
	}
	if cap(b.buf) < int(n) {
		b.buf = make([]byte, n)
	}
	read, err := io.ReadFull(b.r, b.buf[:n])
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil // the reader of the block sees that
	}
	b.left = b.buf[:read]
	if err == nil {
		err = b.check(kind, n)
	}
	return err
}

// check compares a record's length with that of its block, and cuts that of a
// simple packet, which has the frame's.
func (b *blocks) check(kind, n uint32) error {
	switch {
	case kind == blockSimple && len(b.left) >= 12:
		if frame := b.left[8:12]; n >= 16 && b.order.Uint32(frame) > n-16 {
			b.order.PutUint32(frame, n-16)
		} else if n < 16 {
			return fmt.Errorf("a packet's block of %d bytes", n)
		}
	case (kind == blockEnhanced || kind == blockPacket) && len(b.left) >= 24:
		if captured := b.order.Uint32(b.left[20:]); n < 32 || captured > n-32 {
			return fmt.Errorf("a record of %d bytes in a block of %d", captured, n)
		} else if captured > maxRecord {
			return tooLong(captured)
		}
	}
	return nil
}
