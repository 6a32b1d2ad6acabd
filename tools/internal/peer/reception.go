package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Line is a line of a reception's JSON: it has one of the fields.
type Line[C, T any] struct {
	Listening  string `json:"listening,omitempty"`  // first
	Connection *C     `json:"connection,omitempty"` // when it has ended
	Total      *T     `json:"total,omitempty"`      // last
}

// Reception accepts the connections of a server and tells of them: where it
// listens, each that has ended, and at last their total. A C is the report on a
// connection, a T that on all; *C and *T print themselves as text.
type Reception[C, T any] struct {
	Seats Seats
	// Refuse ends a connection that gets no seat; Serve begins with one that
	// has, whose Ended follows. Both return at once.
	Refuse, Serve func(net.Conn)
	Add           func(*T, *C) // a connection to the total

	verbose, asJSON bool
	out             io.Writer // whole lines of several goroutines
	failed          FailureLog

	mu    sync.Mutex
	total T // guarded by mu
}

// AddFlags adds the flags of a reception to its command.
func (r *Reception[C, T]) AddFlags(cmd *cobra.Command) {
	r.Seats.AddFlag(cmd)
	cmd.Flags().BoolVarP(&r.verbose, "verbose", "v", false, "print what each connection had when it ends")
	cli.JSONFlag(cmd, &r.asJSON)
}

// Run accepts connections until the command's context ends, and then closes l
// and calls wait, which waits for the connections.
func (r *Reception[C, T]) Run(cmd *cobra.Command, l net.Listener, wait func()) error {
	ctx := cmd.Context()
	stopClosing := context.AfterFunc(ctx, func() { l.Close() })
	defer func() {
		if stopClosing() {
			l.Close()
		}
	}()
	r.out, r.failed.W = cli.NewLockedWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
	defer r.failed.Close()
	if err := r.sayListening(l.Addr().String()); err != nil {
		return err
	}
	err := r.accept(ctx, l)
	wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(err, r.print(Line[C, T]{Total: &r.total}))
}

func (r *Reception[C, T]) sayListening(at string) error {
	if r.asJSON {
		return r.print(Line[C, T]{Listening: at})
	}
	return SayListening(r.out, at)
}

func (r *Reception[C, T]) accept(ctx context.Context, l net.Listener) error {
	for {
		c, err := accept(ctx, l, r.failed.W)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				r.Refuse(c)
			}
			return nil // ended by a signal
		case err != nil:
			return fmt.Errorf("accept a client: %w", err)
		}
		if err := r.Seats.Take(c.RemoteAddr()); err != nil {
			r.Refuse(c)
			r.failed.Add(fmt.Errorf("client %v: %w", c.RemoteAddr(), err))
			continue
		}
		r.Serve(c)
	}
}

// Ended gives the seat of a connection from an address back and tells of it,
// and of the error if that is not nil.
func (r *Reception[C, T]) Ended(from net.Addr, c *C, err error) {
	r.Seats.Give(from)
	if err != nil {
		r.failed.Add(err)
	}
	r.mu.Lock()
	r.Add(&r.total, c)
	r.mu.Unlock()
	if r.verbose || r.asJSON {
		_ = r.print(Line[C, T]{Connection: c})
	}
}

// print prints a line as JSON, or as text.
func (r *Reception[C, T]) print(line Line[C, T]) (err error) {
	switch {
	case r.asJSON:
		e := json.NewEncoder(r.out)
		e.SetEscapeHTML(false)
		err = e.Encode(line)
	case line.Connection != nil:
		_, err = fmt.Fprintln(r.out, line.Connection)
	case line.Total != nil:
		_, err = fmt.Fprintln(r.out, line.Total)
	}
	return err
}
