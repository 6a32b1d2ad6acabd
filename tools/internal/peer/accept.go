package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Remote is a client's connection: a byte stream, or one that has streams
// itself.
type Remote interface{ RemoteAddr() net.Addr }

// Accept hands the clients that next gives to serve, each with a seat, which
// serve gives back. It returns when serve returns false, or when ctx ends,
// which is no error. A client without a seat is refused.
func Accept[C Remote](ctx context.Context, next func() (C, error), seats *Seats, failed *FailureLog, refuse func(C, error), serve func(C) bool) error {
	for {
		c, err := accept(ctx, next, failed.W)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				refuse(c, context.Cause(ctx))
			}
			return nil
		case err != nil:
			return fmt.Errorf("accept a client: %w", err)
		}
		if err := seats.Take(c.RemoteAddr()); err != nil {
			refuse(c, err)
			failed.Add(fmt.Errorf("client %v: %w", c.RemoteAddr(), err))
			continue
		}
		if !serve(c) {
			return nil
		}
	}
}

// accept is next that waits, and reports it once, while this process lacks what
// others will give back: descriptors or memory.
func accept[C any](ctx context.Context, next func() (C, error), stderr io.Writer) (C, error) {
	for reported := false; ; reported = true {
		conn, err := next()
		lacks := slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}, func(errno error) bool { return errors.Is(err, errno) })
		if !lacks || ctx.Err() != nil {
			return conn, err
		}
		if !reported {
			fmt.Fprintf(stderr, "rdmashim: no client can be accepted until others leave: %s\n", cli.OneLine(err))
		}
		select {
		case <-time.After(acceptPause):
		case <-ctx.Done():
		}
	}
}

// acceptPause is how long a server waits that cannot accept. The clients wait
// in the kernel's backlog meanwhile, so that the next Accept would fail at
// once.
const acceptPause = 100 * time.Millisecond
