package rdmanet

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// Addr is an address of the connection manager: HOST:PORT.
type Addr struct{ netip.AddrPort }

// Network is "rdma".
func (Addr) Network() string { return "rdma" }

// Conn is a connection. It is a net.Conn whose methods do what those of
// net.TCPConn with the same names do, but for what they say here. Errors are
// *net.OpError with Net "rdma"; errors.Is finds in them the errno that TCP
// gives, and uapi's reason.
//
// The locks reading and writing are taken before those of ring, and mu last.
type Conn struct {
	ring          *msgring.Conn
	local, remote Addr
	giveBack      func() // the device, which a Dialer opened

	reading, writing sync.Mutex  // one at a time, also of calls with loans
	readClosed       atomic.Bool // set while mu is held

	mu      sync.Mutex
	closing bool          // guarded by mu, as is abrupt
	abrupt  bool          // Close does not linger
	gone    chan struct{} // closed when everything was given back
	goneErr error         // set before gone is closed
}

var (
	_ net.Conn      = (*Conn)(nil)
	_ io.ReaderFrom = (*Conn)(nil)
	_ io.WriterTo   = (*Conn)(nil)
)

func newConn(ring *msgring.Conn, giveBack func()) *Conn {
	info := ring.Info()
	c := &Conn{
		ring: ring, local: Addr{info.LocalAddr}, remote: Addr{info.RemoteAddr},
		giveBack: giveBack, gone: make(chan struct{}),
	}
	ring.OnClosed(c.ended)
	return c
}

// LocalAddr is the address of this end, an Addr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the address of the peer, an Addr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Info describes a connection.
type Info struct {
	QP       uapi.QP // of the connection's Device
	Ring     int     // bytes of this end's ring
	PeerRing int     // bytes of the peer's
	MTU      int     // bytes of payload a packet
}

// Info returns what the connection is made of.
func (c *Conn) Info() Info {
	info := c.ring.Info()
	return Info{QP: info.QP, Ring: info.Ring, PeerRing: info.PeerRing, MTU: info.MTU}
}

// Stats count a connection's work.
type Stats struct {
	BytesSent, BytesReceived   uint64
	ChunksSent, ChunksReceived uint64
	// WriteWaits is how often a writer found the peer's ring, or the memory to
	// send from, full.
	WriteWaits uint64
}

// Stats returns what the connection has done so far.
func (c *Conn) Stats() Stats {
	s := c.ring.Stats()
	return Stats{
		BytesSent: s.BytesSent, BytesReceived: s.BytesReceived,
		ChunksSent: s.ChunksSent, ChunksReceived: s.ChunksReceived, WriteWaits: s.WriteWaits,
	}
}

// Device is the device of the connection. It is the Dialer's own if that has
// no Device: do not close it.
func (c *Conn) Device() *uapi.Device { return c.ring.Device() }

// Read reads up to len(p) bytes and waits until there is one. io.EOF follows
// the peer's CloseWrite or Close and all its data; ECONNRESET a Close that left
// data unread, and all that was sent before.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) > 0 && !c.readClosed.Load() {
		c.reading.Lock()
		defer c.reading.Unlock()
	}
	if len(p) > 0 && c.readClosed.Load() {
		return 0, c.readError(io.EOF)
	}
	n, err := c.ring.Read(p)
	return n, c.readError(err)
}

// readError is err as the error of a read: after CloseRead, which wakes readers
// by a deadline, io.EOF until Close.
func (c *Conn) readError(err error) error {
	if err != nil && c.readClosed.Load() {
		if _, err = c.ring.Read(nil); err == nil {
			return io.EOF
		}
	}
	return c.failed("read", err)
}

// Write sends p and returns when its last byte is posted, which is before it
// has arrived: as with TCP, nil says nothing about the peer. Once this end
// knows that the peer has gone, it fails. After a deadline n bytes are on their
// way, and the connection is usable.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.ring.Write(p)
	return n, c.failed("write", err)
}

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets when Read and WriteTo give up, with
// os.ErrDeadlineExceeded. The connection is usable after another one is set.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.readClosed.Load() {
		return nil
	}
	return c.failed("set", c.ring.SetReadDeadline(t))
}

// SetWriteDeadline is SetReadDeadline for Write, WriteBuffers and ReadFrom.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return c.failed("set", c.ring.SetWriteDeadline(t))
}
