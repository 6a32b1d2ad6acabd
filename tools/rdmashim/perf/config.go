package perf

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// Op is the measured operation.
type Op string

const (
	Write  Op = "write"
	Read   Op = "read"
	Send   Op = "send"
	Atomic Op = "atomic" // fetch-and-add
)

// AtomicSize is the only size of an atomic, in bytes.
const AtomicSize = 8

// Limits of a Config.
const (
	MaxSize  = 1 << 30 // bytes
	MaxQPs   = 16384
	MaxDepth = 16384
)

// Config is a measurement. Both sides use the same one; it travels as JSON.
type Config struct {
	Op      Op   `json:"op"`
	Latency bool `json:"latency"`
	// Sizes are the messages' lengths in bytes, a run each.
	Sizes []int `json:"sizes"`
	// Iterations is how many messages each queue pair moves; Duration, if it
	// is not 0, takes its place, and every queue pair moves one at least.
	Iterations int           `json:"iterations"`
	Duration   time.Duration `json:"duration"`
	// Warmup is how many messages a queue pair moves before they count.
	Warmup int `json:"warmup"`
	QPs    int `json:"qps"`
	// Depth is how many messages a queue pair has outstanding, Outstanding how
	// many all of them together have (0: QPs · Depth).
	Depth       int `json:"depth"`
	Outstanding int `json:"outstanding"`
	// List is how many messages a post carries, and one of Moderation messages
	// asks for a completion.
	List       int `json:"list"`
	Moderation int `json:"moderation"`
	// Inline is up to which size the post itself carries the bytes.
	Inline int `json:"inline"`
	// Spread is over how many bytes of memory the messages of different queue
	// pairs are spread; 0: 64 MiB.
	Spread int `json:"spread,omitempty"`
	// Heap takes the memory from Go's heap, not from uapi.Alloc.
	Heap bool `json:"heap,omitempty"`
	// MTU is the largest path MTU in bytes (0: the port's).
	MTU           int  `json:"mtu"`
	Bidirectional bool `json:"bidirectional"`
	// Events waits for completions instead of polling.
	Events bool `json:"events"`
	// Slow is the time that the side that answers takes for each SEND, at
	// least (0: none): it takes the completion, and posts the receive anew, of
	// no more than one message in so much time.
	Slow time.Duration `json:"slow,omitempty"`
	// Check compares the bytes that arrived; Spoil inverts a bit of the source
	// before it leaves, so that Check has something to find.
	Check bool `json:"check"`
	Spoil bool `json:"spoil"`
}

// Validate returns the fault of a Config, which may be the peer's. Errors are
// EINVAL.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, syscall.EINVAL)...)
	}
	switch c.Op {
	case Write, Read, Send, Atomic:
	default:
		return bad("operation %q is none of write, read, send, atomic", c.Op)
	}
	if len(c.Sizes) == 0 || len(c.Sizes) > 64 {
		return bad("%d sizes, not 1 to 64", len(c.Sizes))
	}
	for _, s := range c.Sizes {
		if s < 1 || s > MaxSize {
			return bad("size %d is not 1 to %d bytes", s, MaxSize)
		}
		if c.Op == Atomic && s != AtomicSize {
			return bad("size %d: an atomic has %d bytes", s, AtomicSize)
		}
	}
	switch {
	case c.Iterations < 1 && c.Duration == 0, c.Iterations < 0, c.Iterations > 1<<30:
		return bad("%d iterations are not 1 to %d", c.Iterations, 1<<30)
	case c.Duration < 0:
		return bad("duration %v is negative", c.Duration)
	case c.Warmup < 0 || c.Warmup > 1<<30:
		return bad("%d messages of warm-up are not 0 to %d", c.Warmup, 1<<30)
	case c.QPs < 1 || c.QPs > MaxQPs:
		return bad("%d queue pairs are not 1 to %d", c.QPs, MaxQPs)
	case c.Depth < 1 || c.Depth > MaxDepth:
		return bad("a depth of %d is not 1 to %d", c.Depth, MaxDepth)
	case c.Outstanding < 0:
		return bad("%d outstanding messages are less than none", c.Outstanding)
	case c.List < 1 || c.List > c.Depth || c.List > c.limit():
		return bad("%d messages a post are not 1 to the %d that may be outstanding", c.List, min(c.Depth, c.limit()))
	case c.Moderation < 1:
		return bad("a completion for %d messages: it must be 1 or more", c.Moderation)
	case c.Spread < 0 || c.Spread > 1<<30:
		return bad("memory of %d bytes for messages is not 0 to 1 GiB", c.Spread)
	case c.Inline < 0 || c.Inline > 4096:
		return bad("%d inline bytes are not 0 to 4096", c.Inline)
	case c.Latency && (c.QPs > 1 || c.List > 1 || c.Bidirectional):
		return bad("latency is measured with one queue pair, one message a post, and in one direction")
	case c.Slow < 0 || c.Slow > time.Minute || c.Slow > 0 && (c.Op != Send || c.Latency || c.Bidirectional):
		return bad("a receiver that takes %v for a message: want 0 to a minute, of a SEND bandwidth in one direction", c.Slow)
	case c.Spoil && (!c.Check || c.Op == Atomic):
		return bad("there is nothing to spoil without a check of bytes")
	}
	return nil
}

// Bytes is how much memory a side needs.
func (c *Config) Bytes() int64 {
	slots, stride := c.layout()
	return 2 * int64(slots) * int64(stride)
}

// besides is how much memory a side takes besides Bytes, at most: the state and
// the queues of each queue pair, whose slots are rounded up to powers of two in
// number and length, and the bytes that a check expects.
func (c *Config) besides() int64 {
	const state, send, recv, completion = 32 << 10, 1280, 256, 256
	n := int64(c.QPs) * (state + int64(c.Depth)*(send+7*int64(c.Inline)) + int64(c.receives())*recv)
	n += int64(c.entries()) * completion
	if c.Check {
		n += int64(slices.Max(c.Sizes))
	}
	return n
}

const (
	page = 4096
	// spread is how much memory the slots of one direction may take together;
	// queue pairs beyond share slots.
	spread = 64 << 20
)

// layout is how many slots there are for each direction, and how long they are.
func (c *Config) layout() (slots, stride int) {
	if stride = slices.Max(c.Sizes); stride > page/2 {
		stride = (stride + page - 1) / page * page
	} else {
		stride = (stride + 63) / 64 * 64
	}
	return max(1, min(c.QPs, cmp.Or(c.Spread, spread)/stride)), stride
}

// limit is how many messages may be outstanding together.
func (c *Config) limit() int {
	if c.Outstanding > 0 {
		return min(c.Outstanding, c.QPs*c.Depth)
	}
	return c.QPs * c.Depth
}

// entries is the number of entries of the completion queue: enough for all
// queue pairs.
func (c *Config) entries() int { return c.QPs * (c.Depth + c.receives()) }

// fit makes the queue pairs' depth what a completion queue of at most cqe
// entries allows, if fewer messages are to be outstanding together anyway.
func (c Config) fit(cqe int) (Config, error) {
	n := c.entries()
	if n > cqe && c.limit() < c.QPs*c.Depth {
		c.Depth = max(c.List, cqe/c.QPs-c.receives())
	}
	if n = c.entries(); n > cqe {
		return c, fmt.Errorf("%d messages would be outstanding, and a completion queue of this device holds %d: use fewer queue pairs (-q) or a smaller depth (-t)", n, cqe)
	}
	return c, nil
}

// every is how many messages of a queue pair one completion stands for.
// Messages without one must never be all that may be outstanding.
func (c *Config) every() int {
	if c.limit() < c.QPs*c.Depth {
		return 1
	}
	return max(1, min(c.Moderation, c.Depth/2))
}

// receives is how many receives a queue pair has posted.
func (c *Config) receives() int {
	if c.takesReceives() {
		return max(1, min(2*c.Depth, 16384/c.QPs))
	}
	return 0
}

// takesReceives says whether messages use receives up. WRITE with an immediate
// is how a side that waits learns of a WRITE.
func (c *Config) takesReceives() bool {
	return c.Op == Send || c.Op == Write && c.Latency && c.Events
}
