package rdmanet

import (
	"log/slog"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// Config says how to make a connection. The zero value of every field means
// the default in parentheses. The two ends may differ.
type Config struct {
	// Ring is the length in bytes of the ring that the peer writes, and of the
	// memory that this end sends from: a power of two, 16 KiB … 64 MiB
	// (256 KiB; 64 KiB where a kernel's device has the memory locked, and this
	// process may lock less than 64 MiB: `ulimit -l`). It is how much is on its
	// way at most, in one direction.
	Ring int
	// MaxChunk bounds the chunks that a Write is cut into, in bytes (64 KiB). A
	// quarter of either end's ring bounds them too.
	MaxChunk int
	// Service is the name of the service that the dialer asks for and the
	// listener has (any). Another one is refused: HandshakeError.
	Service string
	// Linger is how long written data may take to arrive after Close (5 s).
	Linger time.Duration
	// KeepAlive is how long a connection is idle before its peer is asked for a
	// sign of life (uapi.DefaultKeepAlive). uapi.None: never.
	KeepAlive time.Duration
	// Workers are of the device, and take its completions: that with the fewest
	// connections (none: the goroutines that wait in the connection do).
	Workers []*Worker
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
	rings := msgring.Config{
		Ring: c.Ring, MaxChunk: c.MaxChunk, Service: c.Service,
		Linger: c.Linger, KeepAlive: c.KeepAlive, Logger: c.Logger,
	}
	for _, w := range c.Workers {
		rings.Workers = append(rings.Workers, w.ring)
	}
	return rings
}

// Worker is a goroutine that takes the completions of the connections whose
// Config names it, any number of them on one device. Such a connection takes in
// what arrives also while its program neither reads nor writes, and each wait
// costs a goroutine's wake-up more.
type Worker struct{ ring *msgring.Worker }

// NewWorker starts a worker for connections of the device. Errors are those of
// uapi.Device.CreateCQ.
func NewWorker(device *uapi.Device) (*Worker, error) {
	ring, err := msgring.NewWorker(device)
	if err != nil {
		return nil, err
	}
	return &Worker{ring}, nil
}

// WorkerStats count a Worker's work.
type WorkerStats struct {
	Connections int    `json:"connections"` // now
	Queues      int    `json:"queues"`      // completion queues
	Completions uint64 `json:"completions"` // handed to connections
}

// Stats reads the figures.
func (w *Worker) Stats() WorkerStats { return WorkerStats(w.ring.Stats()) }

// Close ends the worker and its connections, which may lose data, and waits
// until they are gone.
func (w *Worker) Close() error { return w.ring.Close() }
