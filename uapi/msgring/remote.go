package msgring

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// maxReads is how many READs a connection of Messages has under way at most;
// the others wait. It is fewer than a device's initiator depth.
const maxReads = 4

// readID marks the ids of READs.
const readID = uapi.WRID(1) << 61

// reads are the READs of a connection, oldest first. The connection's mu guards
// them.
//
// Invariants: the first posted of queue are at the device, which completes them
// in this order. While posting, one goroutine posts the next one, and alone
// uses request and piece.
type reads struct {
	queue   []read
	posted  int
	posting bool
	request [1]uapi.WR
	piece   [1]uapi.SGE
	ended   []read // whose done is to be called
	calling bool   // a goroutine calls them
	over    bool   // no READ is taken any more
	regions map[uapi.MR]bool
	// registering counts calls of RegMR and DeregMR at the device.
	registering int
}

type read struct {
	to     uapi.SGE
	remote uint64
	rkey   uint32
	done   func(error) // nil but for the last piece
	err    error
}

// RegMR registers memory with the protection domain of a connection of
// Messages, and returns where the peer finds it, if access lets it. Memory that
// is still registered when the connection is given back is deregistered then.
//
// Errors: those of uapi.Device.RegMRWith; net.ErrClosed after Close; EINVAL
// for a connection of Bytes.
func (c *Conn) RegMR(mem []byte, access uapi.Access) (mr uapi.MR, addr uint64, rkey uint32, err error) {
	if c.config.Mode != Messages {
		return -1, 0, 0, fmt.Errorf("msgring: RegMR on a connection of Bytes; use one of Messages: %w", syscall.EINVAL)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err = c.atDevice(func(device *uapi.Device) error {
		mr, err = device.RegMRWith(mem, uapi.MRConfig{Access: access, PD: c.memory.pd})
		if err != nil {
			return err
		}
		info, err := device.QueryMR(mr)
		if err != nil {
			return errors.Join(err, device.DeregMR(mr))
		}
		addr, rkey = info.Addr, info.RKey
		return nil
	})
	if err != nil {
		return -1, 0, 0, err
	}
	if c.reads.regions == nil {
		c.reads.regions = map[uapi.MR]bool{}
	}
	c.reads.regions[mr] = true
	return mr, addr, rkey, nil
}

// DeregMR ends what RegMR began. The error is net.ErrClosed when the connection
// was closed: then the registration ends when CloseContext returns.
func (c *Conn) DeregMR(mr uapi.MR) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.state(&deadline{}); err != nil {
		return err
	}
	if !c.reads.regions[mr] {
		return fmt.Errorf("msgring: DeregMR of region %d, which RegMR of this connection did not give: %w", mr, syscall.EINVAL)
	}
	delete(c.reads.regions, mr)
	return c.atDevice(func(device *uapi.Device) error { return device.DeregMR(mr) })
}

// atDevice calls do, which may take as long as the device: Close waits for it.
// The error is do's, or net.ErrClosed. Preconditions: mu is held; it is given
// up meanwhile.
func (c *Conn) atDevice(do func(device *uapi.Device) error) error {
	if err := c.state(&deadline{}); err != nil {
		return err
	}
	c.reads.registering++
	c.mu.Unlock()
	err := do(c.memory.device)
	c.mu.Lock()
	c.reads.registering--
	c.returned.Broadcast()
	return err
}

// PostRead READs length bytes of the peer's memory, at remote under its key,
// into memory that RegMR registered for local writing; more than the device's
// longest message by several READs. It does not wait: a few READs are under way
// at a time, the others follow in order.
//
// Done is called once for a READ that was taken, in order, by a goroutine that
// waits in the connection or gives it back; it must not block. It may call
// PostRead. Its error is why the READ failed, and with it the connection. The
// device has left the memory when it is called.
//
// Errors: net.ErrClosed after Close; why the connection ended; EINVAL for a
// length of 0, or a connection of Bytes.
func (c *Conn) PostRead(mr uapi.MR, offset, length, remote uint64, rkey uint32, done func(error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch err := c.state(&deadline{}); {
	case err != nil:
		return err
	case c.reads.over:
		return net.ErrClosed
	case c.config.Mode != Messages || length == 0:
		return fmt.Errorf("msgring: PostRead of %d bytes on a connection of mode %d; READ at least 1 byte on one of Messages: %w", length, c.config.Mode, syscall.EINVAL)
	case c.cause != nil:
		return c.cause
	}
	for at := uint64(0); at < length; at += c.longestRead {
		r := read{
			to:     uapi.SGE{MR: mr, Offset: offset + at, Length: min(length-at, c.longestRead)},
			remote: remote + at, rkey: rkey,
		}
		if at+c.longestRead >= length {
			r.done = done
		}
		c.reads.queue = append(c.reads.queue, r)
	}
	c.postReads()
	return nil
}

// postReads posts READs that wait. Preconditions: mu is held; it is given up
// for each post.
func (c *Conn) postReads() {
	r := &c.reads
	for !r.posting && r.posted < min(len(r.queue), maxReads) {
		next := &r.queue[r.posted]
		r.piece[0] = next.to
		r.request[0] = uapi.WR{
			ID: readID, Op: uapi.OpRead, Flags: uapi.Signaled, RemoteAddr: next.remote, RKey: next.rkey, SGE: r.piece[:],
		}
		r.posting = true
		r.posted++
		c.mu.Unlock()
		_, err := c.memory.device.Post(c.qp, r.request[:])
		c.mu.Lock()
		r.posting = false
		c.returned.Broadcast()
		if err != nil {
			c.core.LoseBoth(c.ended(err)) // done follows
			r.posted = maxReads
			all := c.turns.all()
			c.mu.Unlock()
			c.turns.rouse(all[:]...)
			c.mu.Lock()
			return
		}
	}
}

// takeRead takes in the completion of the oldest READ. Preconditions: mu is
// held.
func (c *Conn) takeRead(wc *uapi.WC) {
	r := &c.reads
	if wc.Status != uapi.WCSuccess {
		c.core.LoseBoth(c.lost(wc)) // done follows: the memory may still be written
		return
	}
	if r.over {
		return // a glance took the completion after the queue pair was destroyed
	}
	r.ended = append(r.ended, r.queue[0])
	r.queue = slices.Delete(r.queue, 0, 1)
	r.posted--
	c.postReads()
}

// finishReads calls done of the READs that have ended, unless another goroutine
// does. Preconditions: mu is not held.
func (c *Conn) finishReads() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reads.calling {
		return
	}
	c.reads.calling = true
	for len(c.reads.ended) > 0 {
		r := c.reads.ended[0]
		c.reads.ended = slices.Delete(c.reads.ended, 0, 1)
		c.mu.Unlock()
		if r.done != nil {
			r.done(r.err)
		}
		c.mu.Lock()
	}
	c.reads.calling = false
	c.returned.Broadcast()
}

// loseReads ends all READs and registrations. Preconditions: the queue pair is
// destroyed.
func (c *Conn) loseReads() (err error) {
	c.mu.Lock()
	r := &c.reads
	for _, one := range r.queue {
		one.err = net.ErrClosed
		if c.cause != nil {
			one.err = c.cause
		}
		r.ended = append(r.ended, one)
	}
	r.queue, r.posted, r.over = nil, 0, true
	for mr := range r.regions {
		err = errors.Join(err, unlessClosed(c.memory.device.DeregMR(mr)))
	}
	r.regions = nil
	c.mu.Unlock()
	c.finishReads()
	c.mu.Lock()
	defer c.mu.Unlock()
	for r.calling {
		c.returned.Wait()
	}
	return err
}
