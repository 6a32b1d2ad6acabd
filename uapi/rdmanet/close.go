package rdmanet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
)

// CloseWrite ends this end's data: the peer reads io.EOF behind it. Write fails
// with EPIPE from now on; reading goes on. ENOTCONN when both directions have
// ended, or the connection broke.
func (c *Conn) CloseWrite() error { return c.failed("close", c.ring.CloseWrite()) }

// CloseRead ends reading: Read returns io.EOF from now on. A goroutine that
// ends with the connection discards later data, so that the peer can go on
// writing. Errors are those of CloseWrite.
func (c *Conn) CloseRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ring.Standing(); err != nil || c.readClosed.Load() {
		return c.failed("close", err)
	}
	c.readClosed.Store(true) // before readers wake, which look at it
	if err := c.ring.SetReadDeadline(time.Unix(1, 0)); err != nil {
		c.readClosed.Store(false)
		return c.failed("close", err)
	}
	go c.discard()
	return nil
}

// discard discards arriving data until the connection or its data ends.
func (c *Conn) discard() {
	// Readers that the deadline has woken leave; others do not begin.
	c.reading.Lock()
	err := c.ring.SetReadDeadline(time.Time{})
	c.reading.Unlock()
	for err == nil {
		var p []byte
		if p, err = c.ring.Peek(); err == nil {
			c.ring.Discard(len(p))
		}
	}
}

// SetLinger sets the fate of data that has not arrived at Close. With a
// negative sec, the default, it goes on for up to Config.Linger. With 0 it may
// be lost, and the peer gets ECONNRESET. With more it goes on for up to sec
// seconds.
func (c *Conn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abrupt = sec == 0
	return c.failed("set", c.ring.SetLinger(time.Duration(sec)*time.Second))
}

// Close ends the connection, and calls that wait, at once. It does not wait
// itself: written data goes on to arrive (SetLinger). If the peer sent data
// that was not read, it gets ECONNRESET.
//
// A program that is about to exit calls CloseContext or Flush, because a soft
// device ends with its process.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.closing = true
		lingering.add(c)
	}
	end := c.ring.Close
	if c.abrupt {
		end = c.ring.Abort
	}
	return c.failed("close", end())
}

// ended is called when everything was given back.
func (c *Conn) ended(err error) {
	c.goneErr = err
	if c.giveBack != nil {
		c.giveBack()
	}
	lingering.remove(c)
	close(c.gone)
}

// ErrUndelivered: data that was written is not known to have arrived at the
// peer's device.
var ErrUndelivered = msgring.ErrUndelivered

// CloseContext is Close that waits until everything has arrived at the peer's
// device, or Close gave up, and was given back, as are devices of dialers that
// have no connection. When ctx ends before, it returns ctx's error, and that
// goes on. It may be called after Close.
//
// Errors: ErrUndelivered with why, such as ECONNRESET or, after the linger
// time, ETIMEDOUT; never after SetLinger(0).
func (c *Conn) CloseContext(ctx context.Context) error {
	_ = c.Close()
	select {
	case <-c.gone:
		closeIdle(nil)
		return c.failed("close", c.goneErr)
	case <-ctx.Done():
		return c.failed("close", ctx.Err())
	}
}

// Flush waits until all connections of this process that were closed before
// have ended as CloseContext does, or ctx ends; then it returns ctx's error.
// Its error is ErrUndelivered if of any that have ended since the last Flush
// something may not have arrived, with how many they are and why the last one.
func Flush(ctx context.Context) error { return FlushDevice(ctx, nil) }

// FlushDevice is Flush for the connections of one device, or all if it is nil.
func FlushDevice(ctx context.Context, device *uapi.Device) error {
	for _, c := range lingering.list() {
		if device != nil && c.Device() != device {
			continue
		}
		select {
		case <-c.gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	closeIdle(nil)
	return lingering.takeLosses(device)
}

// lingering are the connections that were closed and are not gone, and what
// those lost that have gone since the last Flush.
var lingering = lingerers{conns: map[*Conn]struct{}{}}

type lingerers struct {
	mu     sync.Mutex
	conns  map[*Conn]struct{} // guarded by mu
	losses []loss             // guarded by mu; at most maxLosses, the latest last
}

// loss is of the connections of a device whose data may not have arrived.
type loss struct {
	device *uapi.Device
	conns  int
	last   error
}

// maxLosses is how many devices' losses are kept for Flush.
const maxLosses = 16

func (l *lingerers) add(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
}

func (l *lingerers) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if !errors.Is(c.goneErr, ErrUndelivered) {
		return
	}
	one := loss{device: c.Device(), conns: 1, last: c.failed("close", c.goneErr)}
	if i := slices.IndexFunc(l.losses, func(o loss) bool { return o.device == one.device }); i >= 0 {
		one.conns += l.losses[i].conns
		l.losses = slices.Delete(l.losses, i, i+1)
	} else if len(l.losses) == maxLosses {
		l.losses = slices.Delete(l.losses, 0, 1)
	}
	l.losses = append(l.losses, one)
}

// takeLosses is the error of Flush, which tells of a loss once.
func (l *lingerers) takeLosses(device *uapi.Device) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all loss
	l.losses = slices.DeleteFunc(l.losses, func(o loss) bool {
		taken := device == nil || o.device == device
		if taken {
			all.conns, all.last = all.conns+o.conns, o.last
		}
		return taken
	})
	if all.last == nil {
		return nil
	}
	return fmt.Errorf("rdmanet: of %d connections, the last one: %w", all.conns, all.last)
}

func (l *lingerers) list() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.conns))
}
