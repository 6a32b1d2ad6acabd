package msgring

import (
	"fmt"
	"log/slog"
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

// Version is that of the protocol.
const Version = core.Version

// Refusal is why an end refuses the hello of another one, and Reason its number
// on the wire.
type (
	Refusal = core.Refusal
	Reason  = core.Reason
)

// Config says how to make a connection. The zero value of every field means
// the default in parentheses. Both ends need the same Mode.
type Config struct {
	// Mode is what the connection carries (Bytes).
	Mode Mode
	// Ring is the length in bytes of the ring that the peer writes, and of the
	// memory that this end sends from: a power of two, 16 KiB … 64 MiB (1 MiB;
	// 256 KiB of Messages, and where a kernel's device has the memory locked;
	// 64 KiB there if this process may lock less than 64 MiB: `ulimit -l`). It
	// is how much is on its way at most, in one direction.
	Ring int
	// MaxChunk bounds the chunks that a Write of Bytes is cut into, in bytes
	// (256 KiB). A quarter of either end's ring bounds them too.
	MaxChunk int
	// Service is the name of the service that the dialer asks for and the
	// acceptor has (any). Another one is refused.
	Service string
	// Session is the RPC session that a dialer of Messages asks for (none).
	Session Session
	// Admit is an acceptor's decision about the session that a dialer of
	// Messages asks for, before anything is made for the connection. It returns
	// the answer, or an error: a *Refusal with a Reason and Text is told to the
	// dialer. Accept may fail after it (none: every hello is taken, and a
	// dialer that asks for a session gives up with EPROTO).
	Admit func(asked Session) (answer Session, err error)
	// Linger is how long written data may take to arrive after Close (5 s).
	Linger time.Duration
	// KeepAlive is uapi.DialConfig.KeepAlive, of a dialer: an acceptor has its
	// uapi.Listener's.
	KeepAlive time.Duration
	// Logger is told once a process that rings are made smaller, because little
	// memory may be locked (none).
	Logger *slog.Logger
}

// Defaults of Config. Of Bytes a ring of 256 KiB has 0.6 of the bandwidth by
// UDP and 0.5 through shared memory, at 1.5 times the processor time. Messages
// that are long do not go through the ring (uapi/rpc/session).
const (
	DefaultRing     = 1 << 20
	LesserRing      = 256 << 10 // of Messages, and where a kernel locks it
	LittleRing      = 64 << 10  // where little memory may be locked
	DefaultMaxChunk = 256 << 10
	DefaultLinger   = 5 * time.Second
)

// Check returns EINVAL, with the name of the field, for a configuration that
// Dial and Accept refuse.
func (c *Config) Check() error {
	wrong := func(field, format string, value any) error {
		return fmt.Errorf("msgring: Config.%s is "+format+": %w", field, value, syscall.EINVAL)
	}
	switch {
	case c.Mode != 0 && c.Mode != Bytes && c.Mode != Messages:
		return wrong("Mode", "%d; make it Bytes or Messages", c.Mode)
	case c.Ring != 0 && (c.Ring < core.MinRing || c.Ring > core.MaxRing || bits.OnesCount(uint(c.Ring)) != 1):
		return wrong("Ring", "%d bytes; make it a power of two from 16 KiB to 64 MiB", c.Ring)
	case c.MaxChunk < 0:
		return wrong("MaxChunk", "%d bytes; make it positive, or 0 for 256 KiB", c.MaxChunk)
	case c.Mode != Messages && c.Session != Session{}:
		return wrong("Session", "%+v; only Messages have one", c.Session)
	case c.Mode != Messages && c.Admit != nil:
		return wrong("Admit", "set in mode %d; only Messages have sessions", c.Mode)
	case c.Linger < 0:
		return wrong("Linger", "%v; make it positive, or 0 for 5s", c.Linger)
	}
	return nil
}

// on returns the configuration of a connection on that device, with defaults.
func (c Config) on(device *uapi.Device) (Config, error) {
	if err := c.Check(); err != nil {
		return c, err
	}
	if c.Mode == 0 {
		c.Mode = Bytes
	}
	if c.Ring == 0 {
		device, err := factsOf(device)
		if err != nil {
			return c, err
		}
		c.Ring = defaultRing(c.Mode, device.kind, lockable, c.Logger)
	}
	if c.MaxChunk == 0 {
		c.MaxChunk = DefaultMaxChunk
	}
	if c.Linger == 0 {
		c.Linger = DefaultLinger
	}
	return c, nil
}

// receives is how many receives are posted: one for each chunk that the ring
// holds at most, and for control messages.
func (c *Config) receives() int {
	return c.Ring/int(core.DefaultQuantum(uint32(c.Ring))) + core.Controls
}

// sends is the depth of the send queue.
func (c *Config) sends() int { return core.Slots(uint32(c.Ring)) }

// entries is how many completions there may be at a time: an entry is for the
// keepalive's probe.
func (c *Config) entries() int { return c.receives() + c.sends() + c.reads() + 1 }

// reads is how many READs are under way at most.
func (c *Config) reads() int {
	if c.Mode == Messages {
		return maxReads
	}
	return 0
}

// queuePair is the queue pair of a connection whose objects m holds.
func (c *Config) queuePair(m *memory) uapi.QPConfig {
	access := uapi.AccessLocalWrite | uapi.AccessRemoteWrite
	if c.reads() > 0 {
		access |= uapi.AccessRemoteRead
	}
	return uapi.QPConfig{
		PD: m.pd, SendCQ: m.cq, SendDepth: c.sends() + c.reads(), RecvDepth: c.receives(),
		Inline: core.ControlLen, Access: access,
	}
}

// layout is that of the ring and of the staging memory.
func (c *Config) layout() (ring, staging core.Layout) {
	size := uint64(c.Ring)
	return core.Layout{Size: size, Quantum: uint64(core.DefaultQuantum(uint32(c.Ring)))}, core.Layout{Size: size, Quantum: 64}
}
