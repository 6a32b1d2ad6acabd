package msgring

import (
	"fmt"
	"math/bits"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// Mode says what a connection carries.
type Mode = core.Mode

const (
	// Bytes is a byte stream.
	Bytes = core.Bytes
	// Messages keeps the boundaries of messages, each at most Info.Longest
	// bytes long. On the wire it is the mode of RPC.
	Messages = core.RPC
)

// Version is that of the protocol, and Refusal is why an end refuses the hello
// of another one.
const Version = core.Version

type Refusal = core.Refusal

// Config says how to make a connection. The zero value of every field means
// the default in parentheses. Both ends need the same Mode.
type Config struct {
	// Mode is what the connection carries (Bytes).
	Mode Mode
	// Ring is the length in bytes of the ring that the peer writes, and of the
	// memory that this end sends from: a power of two, 16 KiB … 64 MiB
	// (256 KiB). It is how much is on its way at most, in one direction.
	Ring int
	// MaxChunk bounds the chunks that a Write of Bytes is cut into, in bytes
	// (64 KiB). A quarter of either end's ring bounds them too.
	MaxChunk int
	// Service is the name of what the dialer asks for and the acceptor has
	// (any). Another one is refused.
	Service string
	// Linger is how long what was written may take to arrive after Close (5 s).
	Linger time.Duration
	// KeepAlive is uapi.DialConfig.KeepAlive, of a dialer.
	KeepAlive time.Duration
}

// Defaults of Config.
const (
	DefaultRing     = 256 << 10
	DefaultMaxChunk = 64 << 10
	DefaultLinger   = 5 * time.Second
)

func (c Config) withDefaults() (Config, error) {
	if c.Mode == 0 {
		c.Mode = Bytes
	}
	if c.Ring == 0 {
		c.Ring = DefaultRing
	}
	if c.MaxChunk == 0 {
		c.MaxChunk = DefaultMaxChunk
	}
	if c.Linger == 0 {
		c.Linger = DefaultLinger
	}
	switch {
	case c.Mode != Bytes && c.Mode != Messages:
		return c, fmt.Errorf("msgring: mode %d; it is Bytes or Messages: %w", c.Mode, syscall.EINVAL)
	case c.Ring < core.MinRing || c.Ring > core.MaxRing || bits.OnesCount(uint(c.Ring)) != 1:
		return c, fmt.Errorf("msgring: a ring of %d bytes; it is a power of two, %d … %d: %w", c.Ring, core.MinRing, core.MaxRing, syscall.EINVAL)
	case c.MaxChunk < 1 || c.Linger < 0:
		return c, fmt.Errorf("msgring: a longest chunk of %d bytes and a linger of %v; both are positive: %w", c.MaxChunk, c.Linger, syscall.EINVAL)
	}
	return c, nil
}

// quanta is how many chunks the ring holds at most.
func (c *Config) quanta() int { return c.Ring / int(core.DefaultQuantum(uint32(c.Ring))) }

// receives is how many receives are posted.
func (c *Config) receives() int { return c.quanta() + core.Controls }

// sends is the depth of the send queue.
func (c *Config) sends() int { return core.Slots(uint32(c.Ring)) }

// queuePair is the queue pair of a connection whose objects m holds.
func (c *Config) queuePair(m *memory) uapi.QPConfig {
	return uapi.QPConfig{
		PD: m.pd, SendCQ: m.cq, SendDepth: c.sends(), RecvDepth: c.receives(),
		Inline: core.ControlLen, Access: uapi.AccessLocalWrite | uapi.AccessRemoteWrite,
	}
}

// layout is that of the ring and of the staging memory.
func (c *Config) layout() (ring, staging core.Layout) {
	size := uint64(c.Ring)
	return core.Layout{Size: size, Quantum: uint64(core.DefaultQuantum(uint32(c.Ring)))}, core.Layout{Size: size, Quantum: 64}
}
