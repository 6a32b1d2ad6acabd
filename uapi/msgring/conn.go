package msgring

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// Conn is one end of a connection. Its methods are safe for concurrent use:
// one goroutine at a time reads, one at a time writes, and the others wait for
// their turn.
//
// Locks are taken in this order: write or read, which a goroutine keeps while
// it waits; mu, which no goroutine keeps while it posts or waits; turns.mu.
// core.End, not a lock, keeps posts to one at a time, so that a goroutine waits
// for another's doorbell only to post data.
type Conn struct {
	config Config
	memory *memory
	qp     uapi.QP
	peer   core.Hello
	info   Info

	stopDone func() bool // OnDone's, of done

	write, read sync.Mutex
	turns       turns

	mu       sync.Mutex
	core     *core.End // guarded by mu, as the fields below
	closing  bool
	closed   chan struct{} // closed when everything was given back
	closeErr error         // set before closed is
	gone     func(error)   // OnClosed's; set before closing is
	overdue  bool          // the linger time has passed
	aborted  bool
	patience time.Duration // how long Close lingers
	reserved int           // bytes that Reserve lends
	lent     bool          // Peek lends a chunk
	// interrupted is set until a reader was told.
	interrupted bool
	cause       error     // why the connection ended, once it has
	returned    sync.Cond // on mu: lent, a post or a registration has ended
	reading     sight     // of the goroutine that reads, which alone uses it unlocked
	writing     chunk     // of the goroutine that writes, likewise
	readBy      deadline
	writeBy     deadline
	reads       reads
	// longestRead is the device's longest message, in bytes.
	longestRead uint64
	stats       Stats

	// Of the post that is under way, and of the leader; core.End and turns see
	// to it that there is one.
	request [1]uapi.WR
	piece   [1]uapi.SGE
	first   [8]uapi.WC // until there is a batch
	batch   *batch
}

// Info describes a connection.
type Info struct {
	uapi.ConnInfo
	QP       uapi.QP
	Ring     int // bytes of this end's ring
	PeerRing int // bytes of the peer's
	Longest  int // bytes of the longest chunk that this end writes
	MTU      int // bytes of payload a packet
}

// Stats count a connection's work.
type Stats struct {
	BytesSent, BytesReceived   uint64 // payload
	ChunksSent, ChunksReceived uint64
	ControlsSent               uint64
	// WriteWaits is how often a writer found no credit, slot or staging.
	WriteWaits uint64
}

// Info returns what the connection is made of.
func (c *Conn) Info() Info { return c.info }

// Stats returns what the connection has done so far.
func (c *Conn) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Device is the device of the connection.
func (c *Conn) Device() *uapi.Device { return c.memory.device }

// state is why a call cannot go on: the connection was closed here, or the
// deadline has passed. Preconditions: mu is held.
func (c *Conn) state(d *deadline) error {
	switch {
	case c.closing:
		return net.ErrClosed
	case d.passed:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// newConn makes an end that has no queue pair yet.
func newConn(device *uapi.Device, config Config) (*Conn, error) {
	config, err := config.on(device)
	if err != nil {
		return nil, err
	}
	memory, err := newMemory(device, &config)
	if err != nil {
		return nil, err
	}
	ring, staging := config.layout()
	c := &Conn{
		config: config, patience: config.Linger, memory: memory, closed: make(chan struct{}),
		core: core.NewEnd(core.Config{
			Ring: ring, Longest: uint64(core.LongestChunk(uint32(config.Ring))), Staging: staging,
			Slots: uint64(config.sends()), Controls: core.Controls,
		}),
	}
	c.returned.L = &c.mu
	c.turns.init(c)
	c.request[0].SGE = c.piece[:]
	return c, nil
}

func (c *Conn) hello() core.Hello {
	h := core.Hello{
		Mode: c.config.Mode, Quantum: core.DefaultQuantum(uint32(c.config.Ring)),
		Addr: c.memory.ring.info.Addr, RKey: c.memory.ring.info.RKey, Ring: uint32(c.config.Ring),
		Controls: core.Controls, Longest: core.LongestChunk(uint32(c.config.Ring)),
		Service: core.ServiceHash(c.config.Service),
	}
	c.config.Session.fillHello(&h)
	return h
}

// open lets the end post, now that the connection stands and the peer's ring is
// known. A chunk of a whole number of packets less the 4 bytes of the immediate
// fills its packets.
func (c *Conn) open(info uapi.ConnInfo) error {
	pair, err := c.memory.device.QueryQP(c.qp)
	if err != nil {
		return err
	}
	device, err := factsOf(c.memory.device)
	if err != nil {
		return err
	}
	longest := min(uint64(c.peer.Longest), device.maxMessage, uint64(c.config.Ring)/4)
	if c.config.Mode == Bytes {
		longest = min(longest, uint64(c.config.MaxChunk))
		if mtu := uint64(pair.MTU); longest > mtu {
			longest = longest/mtu*mtu - 4
		}
	}
	if c.stopDone, err = c.memory.device.OnDone(c.qp, c.done); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longestRead = device.maxMessage
	c.core.Open(core.Layout{Size: uint64(c.peer.Ring), Quantum: uint64(c.peer.Quantum)}, longest)
	c.info = Info{
		ConnInfo: info, QP: c.qp, Ring: c.config.Ring, PeerRing: int(c.peer.Ring),
		Longest: int(c.core.Longest()), MTU: pair.MTU,
	}
	c.postControls()
	return nil
}

// done notes that the connection has ended, and wakes those that wait: devices
// flush receives late, or never.
func (c *Conn) done(cause error) {
	c.mu.Lock()
	c.cause = cause
	c.mu.Unlock()
	all := c.turns.all()
	c.turns.rouse(all[:]...)
}
