package rdmanet

import (
	"log/slog"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// Config says how to make a connection. The zero value of every field means
// the default in parentheses. The two ends may differ.
type Config struct {
	// Ring is the length in bytes of the ring that the peer writes, and of the
	// memory that this end sends from: a power of two, 16 KiB … 64 MiB (1 MiB;
	// 256 KiB where a kernel's device has the memory locked, and 64 KiB there
	// if this process may lock less than 64 MiB: `ulimit -l`). It is how much
	// is on its way at most, in one direction.
	Ring int
	// MaxChunk bounds the chunks that a Write is cut into, in bytes (256 KiB).
	// A quarter of either end's ring bounds them too.
	MaxChunk int
	// Service is the name of the service that the dialer asks for and the
	// listener has (any). Another one is refused: HandshakeError.
	Service string
	// Linger is how long written data may take to arrive after Close (5 s).
	Linger time.Duration
	// KeepAlive is how long a connection is idle before its peer is asked for a
	// sign of life (uapi.DefaultKeepAlive). uapi.None: never.
	KeepAlive time.Duration
	// Logger is told once a process that rings are made smaller, because little
	// memory may be locked (none).
	Logger *slog.Logger
}

// Check returns EINVAL, with the name of the field, for a configuration that
// Dial and Listen refuse.
func (c Config) Check() error {
	rings := c.rings()
	return rings.Check()
}

// rings is the configuration of the message rings below.
func (c *Config) rings() msgring.Config {
	return msgring.Config{
		Ring: c.Ring, MaxChunk: c.MaxChunk, Service: c.Service,
		Linger: c.Linger, KeepAlive: c.KeepAlive, Logger: c.Logger,
	}
}
