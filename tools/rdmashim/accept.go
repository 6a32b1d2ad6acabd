package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// accept serves clients until ctx ends.
func accept(ctx context.Context, ln net.Listener, o serverOptions, stderr io.Writer) error {
	failed := &failureLog{w: stderr}
	defer failed.close()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	pause := acceptPause{w: stderr}
	for {
		conn, err := ln.Accept()
		switch {
		case err == nil:
			pause.delay = 0
		case ctx.Err() != nil:
			if cause := context.Cause(ctx); errors.Is(cause, errPeerGone) {
				return fmt.Errorf("nobody was served: %w", cause)
			}
			return nil // ended by a signal
		case wantsResources(err):
			pause.take(ctx, err)
			continue
		default:
			return fmt.Errorf("accept a client: %w", err)
		}
		if o.once {
			return o.session(ctx, conn, o, stderr)
		}
		if err := o.seats.take(); err != nil {
			refuse(conn, err)
			failed.add(fmt.Errorf("client %v: %w", conn.RemoteAddr(), err))
			continue
		}
		sessions.Go(func() {
			defer o.seats.give()
			if err := o.session(ctx, conn, o, stderr); err != nil {
				failed.add(fmt.Errorf("client %v: %w", conn.RemoteAddr(), err))
			}
		})
	}
}

// refuse tells a client why it is not served. It does not wait for the client: the
// answer fits the connection's empty buffer.
func refuse(conn net.Conn, why error) {
	_ = newControl(conn).send(welcome{Error: why.Error()})
	_ = conn.Close()
}

// wantsResources says whether accepting failed for want of what others will give
// back: descriptors or memory.
func wantsResources(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// acceptPause is how a server goes on that cannot accept. The clients wait in the
// kernel's backlog meanwhile, so that the next Accept would fail at once.
type acceptPause struct {
	w     io.Writer
	delay time.Duration // the last one; 0 after a success
	said  time.Time
}

const (
	shortestPause = 5 * time.Millisecond
	// longestPause is how long a client waits at most after there is room again.
	longestPause = time.Second
	// sayPauseAgain keeps a server at its limit from saying so with every client.
	sayPauseAgain = time.Minute
)

// take waits, twice as long as the last time, and says why the first time.
func (p *acceptPause) take(ctx context.Context, err error) {
	if now := time.Now(); p.said.IsZero() || now.Sub(p.said) >= sayPauseAgain {
		p.said = now
		fmt.Fprintf(p.w, "rdmashim: no client can be accepted until others leave: %s\n", oneLine(err))
	}
	p.delay = min(max(2*p.delay, shortestPause), longestPause)
	t := time.NewTimer(p.delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// failureLog tells of clients that were refused or failed, a line for each
// failureLine at most: the first at once, then the last of those in between with
// their number.
type failureLog struct {
	w io.Writer

	mu    sync.Mutex
	timer *time.Timer // guarded by mu: until the next line is due; nil: it may be said now
	last  string      // guarded by mu: of those that were not said
	held  int         // guarded by mu: how many those are
}

const failureLine = time.Second

func (f *failureLog) add(err error) {
	text := oneLine(err)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.last = text
		f.held++
		return
	}
	fmt.Fprintf(f.w, "rdmashim: %s\n", text)
	f.timer = time.AfterFunc(failureLine, f.due)
}

// due says what was held back; another line is due so much later.
func (f *failureLog) due() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer == nil {
		return // closed
	}
	if f.say() {
		f.timer.Reset(failureLine)
	} else {
		f.timer = nil
	}
}

// say writes the line about those that were held back. Preconditions: mu is held.
func (f *failureLog) say() bool {
	if f.held == 0 {
		return false
	}
	more := ""
	if f.held > 1 {
		more = fmt.Sprintf(" (and %d clients more)", f.held-1)
	}
	fmt.Fprintf(f.w, "rdmashim: %s%s\n", f.last, more)
	f.held = 0
	return true
}

// close says what is left.
func (f *failureLog) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	f.say()
}
