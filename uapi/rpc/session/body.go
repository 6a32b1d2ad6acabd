package session

import (
	"context"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// Body is a message that is appended to memory which the session gives, and
// which the device may read. It may have two methods more. InPlace() []byte is
// the message where it lies in one piece, or nil; if it is a loan of the
// session's Memory it is sent from there, not appended. Close() error is called
// once, when the session needs the Body no more.
type Body interface {
	// Size is how many bytes Append appends at most: 0 … 64 MiB and 64 KiB.
	Size() int
	// Append appends the message to b, whose capacity is enough, and returns
	// the longer slice. It is called once, in the caller's goroutine.
	Append(b []byte) ([]byte, error)
}

// Bytes is a Body of bytes that are there.
type Bytes []byte

// Size is the number of the bytes.
func (b Bytes) Size() int { return len(b) }

// InPlace is the bytes.
func (b Bytes) InPlace() []byte { return b }

// Append appends the bytes.
func (b Bytes) Append(to []byte) ([]byte, error) { return append(to, b...), nil }

// copyLimit is how many bytes of a body travel inside its message at most;
// the peer READs a longer one.
const copyLimit = 32 << 10

// payload is a body as it is sent: bytes that travel in the message, or a slab
// that the peer READs. It is neither when there is none.
type payload struct {
	bytes  []byte
	slab   *slab
	length int  // of the body in slab
	has    bool // there is a body, be it empty
}

// scratch is memory for the bytes of a call, which are lent from its front on.
type scratch struct {
	mem  [4096]byte
	used int
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// room is an empty slice of capacity n: of the scratch, unless that has too
// little left, or there is none.
func (s *scratch) room(n int) []byte {
	if s == nil || n > len(s.mem)-s.used {
		return make([]byte, 0, n)
	}
	s.used += n
	return s.mem[s.used-n : s.used-n : s.used]
}

// copy is a copy of b, nil of nothing.
func (s *scratch) copy(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append(s.room(len(b)), b...)
}

// free gives the scratch back: its memory is in use no more.
func (s *scratch) free() {
	s.used = 0
	scratches.Put(s)
}

// load appends a body to memory of its own, or of the scratch if there is one.
// It holds the slab, whose memory it waits for until ctx ends.
func (s *slabs) load(ctx context.Context, b Body, to *scratch) (p payload, err error) {
	if b == nil {
		return p, nil
	}
	if c, ok := b.(io.Closer); ok {
		defer c.Close()
	}
	n := b.Size()
	if n < 0 || n > wire.MaxBody {
		return p, fmt.Errorf("rpc session: a body of %d bytes; it has at most %d: %w", n, wire.MaxBody, syscall.EMSGSIZE)
	}
	p.has = true
	if x, ok := b.(interface{ InPlace() []byte }); ok && n > copyLimit {
		lies := x.InPlace()
		if p.slab = s.borrowed(lies); p.slab != nil {
			p.length = len(lies)
			s.prepare(p.slab)
			return p, nil
		}
	}
	var room []byte
	if n <= copyLimit {
		room = to.room(n)
	} else {
		if err = s.account.takeSend(ctx, sized(n)); err != nil {
			return payload{}, fmt.Errorf("rpc session: there is no memory for a body of %d bytes, since clients do not read theirs: %w", n, err)
		}
		p.slab = s.get(n, useSend)
		room = p.slab.mem[:0]
	}
	out, err := b.Append(room)
	switch {
	case err != nil:
	case len(out) > n:
		err = fmt.Errorf("rpc session: a body of at most %d bytes appended %d; Body.Size is too small: %w", n, len(out), syscall.EINVAL)
	case len(out) <= copyLimit && p.slab != nil: // Size was generous
		p.bytes = append([]byte(nil), out...)
		p.drop()
	case p.slab != nil:
		if &out[0] != &p.slab.mem[0] { // Append has moved
			copy(p.slab.mem, out)
		}
		p.length = len(out)
		s.prepare(p.slab)
		return p, nil
	default:
		p.bytes = out
	}
	if err != nil {
		p.drop()
	}
	return p, err
}

// drop lets the slab go.
func (p *payload) drop() {
	if p.slab != nil {
		p.slab.drop()
		p.slab = nil
	}
}
