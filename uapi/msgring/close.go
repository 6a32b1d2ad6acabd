package msgring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// ErrUndelivered: data that was written before Close is not known to have
// arrived at the peer's device.
var ErrUndelivered = errors.New("msgring: what was written may not have arrived")

// CloseWrite ends this end's data: the peer reads io.EOF behind it. Reading
// goes on. A Write that waits ends with EPIPE. Errors are those of Standing.
func (c *Conn) CloseWrite() error {
	err := c.Standing()
	if err != nil {
		return err
	}
	c.mu.Lock()
	if err = c.state(&deadline{}); err == nil { // it may have been closed since
		c.core.CloseWrite()
		c.postControls()
	}
	c.mu.Unlock()
	c.turns.rouse(&c.turns.writer)
	return err
}

// Standing is nil while there is a direction to end: net.ErrClosed after Close,
// ENOTCONN when both have ended or the connection broke. Nothing is left to
// this end alone then but to read what has arrived, and to close.
func (c *Conn) Standing() error {
	c.turns.glance()
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.state(&deadline{})
	if err == nil && c.core.Over() {
		err = fmt.Errorf("msgring: the connection has ended: %w", syscall.ENOTCONN)
	}
	return err
}

// SetLinger replaces Config.Linger; a negative d restores it. The error is
// net.ErrClosed after Close.
func (c *Conn) SetLinger(d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.state(&deadline{}); err != nil {
		return err
	}
	c.patience = d
	if d < 0 {
		c.patience = c.config.Linger
	}
	return nil
}

// Close ends the connection, and calls that wait, at once, with net.ErrClosed.
// It does not wait itself: for up to Config.Linger written data goes on to
// arrive, then queue pair and memory are given back. If data was not read, the
// peer gets ECONNRESET.
//
// A queue pair ends with its Device, and a soft device with its
// process: a program that is about to end calls CloseContext instead.
func (c *Conn) Close() error { return c.close(false) }

// Abort is Close without lingering: data that was written and has not arrived
// may be lost, and the peer gets ECONNRESET.
func (c *Conn) Abort() error { return c.close(true) }

// CloseContext is Close that waits until everything has arrived and was given
// back, or ctx ends; then it returns ctx's error, and that goes on.
//
// Errors: ErrUndelivered with its cause, which is ETIMEDOUT after the linger
// time; never after Abort.
func (c *Conn) CloseContext(ctx context.Context) error {
	_ = c.Close()
	select {
	case <-c.closed:
		return c.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the connection, by a choice that regards all that has arrived.
func (c *Conn) close(abort bool) error {
	c.turns.glance()
	c.mu.Lock()
	err := c.state(&deadline{})
	if err == nil {
		c.closing, c.aborted = true, abort
		c.readBy.stop()
		c.writeBy.stop()
		if abort {
			c.core.Reset(core.ClosedNoLinger)
		}
		c.core.Close()
		c.postControls()
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.turns.rouse(&c.turns.reader, &c.turns.writer)
	c.memory.kits.end(c)
	return nil
}

// OnClosed has f called, by a goroutine that holds nothing, when everything was
// given back after Close or Abort, with CloseContext's error. Preconditions: it
// is called once at most, before those.
func (c *Conn) OnClosed(f func(error)) { c.gone = f }

// finish gives everything back, and tells.
func (c *Conn) finish() {
	c.linger()
	close(c.closed)
	if c.gone != nil {
		c.gone(c.closeErr)
	}
}

// linger waits until all has arrived at the peer's device, the connection has
// ended, or the time is over, and gives everything back.
func (c *Conn) linger() {
	c.mu.Lock()
	limit := c.patience
	c.mu.Unlock()
	timer := time.AfterFunc(limit, func() {
		c.mu.Lock()
		c.overdue = true
		c.mu.Unlock()
		c.turns.rouse(&c.turns.closer)
	})
	c.turns.until(&c.turns.closer)
	timer.Stop()
	c.mu.Lock()
	undelivered := c.undelivered()
	device := c.memory.device
	var disconnected error
	if c.lent { // perhaps for long, and the peer does not wait for the program
		c.mu.Unlock()
		disconnected = device.Disconnect(c.qp)
		c.mu.Lock()
	}
	for c.lent {
		c.returned.Wait()
	}
	c.mu.Unlock()
	// Goroutines that waited to read or write have left, or are about to.
	c.write.Lock()
	c.read.Lock()
	defer c.write.Unlock()
	defer c.read.Unlock()
	c.turns.retire()
	c.giveBatch()
	c.mu.Lock()
	for c.core.Posting() || c.reads.posting || c.reads.registering > 0 {
		c.returned.Wait()
	}
	c.mu.Unlock()
	c.stopDone()
	destroyed := device.DestroyQP(c.qp)
	lost := c.loseReads()
	if destroyed == nil && lost == nil {
		lost = c.memory.leave(c.core.Lent())
	} else {
		lost = errors.Join(lost, c.memory.free())
	}
	c.closeErr = errors.Join(undelivered, unlessClosed(disconnected), unlessClosed(destroyed), lost)
}

// undelivered is why written data has not arrived. Preconditions: mu is held.
func (c *Conn) undelivered() error {
	err := c.core.Undelivered()
	switch {
	case c.aborted:
		return nil
	case err == syscall.EINPROGRESS:
		err = syscall.ETIMEDOUT
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUndelivered, err)
	}
	return err
}

// lookClose reports whether linger may end. What arrived before the end of the
// connection may tell that all that was written has.
func (c *Conn) lookClose() bool {
	lost := c.core.Lost() && (c.cause == nil || c.core.LostBoth())
	return c.overdue || c.core.Flushed() || c.core.ResetFlushed() || lost
}

// unlessClosed drops the error of an object that went with its device.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
