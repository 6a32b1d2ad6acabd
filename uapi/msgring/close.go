package msgring

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// CloseWrite ends this end's data: the peer reads io.EOF behind it. Reading
// goes on. A Write that waits ends with EPIPE.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	err := c.state(&deadline{})
	if err == nil {
		c.core.CloseWrite()
		c.postControls()
	}
	c.mu.Unlock()
	c.turns.rouse(&c.turns.writer)
	return err
}

// SetLinger replaces Config.Linger; a negative d restores it.
func (c *Conn) SetLinger(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patience = d
	if d < 0 {
		c.patience = c.config.Linger
	}
}

// Close ends the connection, and calls that wait, at once, with net.ErrClosed.
// It does not wait itself: for up to Config.Linger written data goes on to
// arrive, then queue pair and memory are given back. If data was not read, the
// peer gets ECONNRESET.
//
// A queue pair ends with its device's Context, and a soft device with its
// process: a program that is about to end calls CloseContext instead.
func (c *Conn) Close() error {
	return c.close(func() {
		if data, _, _ := c.core.Readable(); data {
			c.core.Reset(core.ClosedUnread)
		} else {
			c.core.CloseWrite()
		}
	})
}

// Abort is Close without lingering: data that was written and has not arrived
// may be lost, and the peer gets ECONNRESET.
func (c *Conn) Abort() error {
	return c.close(func() { c.core.Reset(core.ClosedNoLinger) })
}

// CloseContext is Close that waits until everything has arrived and was given
// back, or ctx ends; then it returns ctx's error, and that goes on.
func (c *Conn) CloseContext(ctx context.Context) error {
	_ = c.Close()
	select {
	case <-c.closed:
		return c.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Conn) close(note func()) error {
	c.mu.Lock()
	err := c.state(&deadline{})
	if err == nil {
		note()
		c.closing = true
		c.readBy.stop()
		c.writeBy.stop()
		c.postControls()
	}
	c.mu.Unlock()
	if err == nil {
		c.turns.rouse(&c.turns.reader, &c.turns.writer)
		go c.linger()
	}
	return err
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
	c.stop()
	device := c.memory.device
	disconnected := c.disconnect()
	c.mu.Lock()
	for c.lent {
		c.returned.Wait()
	}
	c.mu.Unlock()
	// Goroutines that waited to read or write have left, or are about to.
	c.write.Lock()
	c.read.Lock()
	defer c.write.Unlock()
	defer c.read.Unlock()
	c.mu.Lock()
	for c.core.Posting() || c.reads.posting || c.reads.registering > 0 {
		c.returned.Wait()
	}
	c.mu.Unlock()
	c.closeErr = errors.Join(unlessClosed(disconnected), unlessClosed(device.DestroyQP(c.qp)), c.loseReads(), c.memory.free())
	close(c.closed)
}

// lookClose reports whether linger may end.
func (c *Conn) lookClose() bool {
	return c.overdue || c.core.Flushed() || c.core.ResetFlushed() || c.core.Lost()
}

// unlessClosed drops the error of an object that went with its context.
func unlessClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
