package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// Reception accepts the connections of a server, bounds them and tells of them:
// where it listens, each that has ended, and at last their total.
type Reception struct {
	Seats Seats
	// Once ends it behind one connection of each listener.
	Once bool
	// Refuse ends a connection that is not served, at once.
	Refuse func(Remote, error)
	// Serve serves one until it has ended. Its ctx ends with a cause when the
	// server does and the connection has had --drain.
	Serve func(context.Context, Remote, *Tally) error

	silence, idle, drain time.Duration
	verbose, asJSON      bool

	out    io.Writer // whole lines of several goroutines
	failed FailureLog

	mu    sync.Mutex
	total Total // guarded by mu
}

// AddFlags adds the flags of a reception to its command.
func (r *Reception) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&r.silence, "silence", 10*time.Second, "reset a connection on which nothing at all has come through in that time; 0: as --idle")
	f.DurationVar(&r.idle, "idle", time.Hour, "reset a connection on which nothing has come through for so long; 0: never")
	f.DurationVar(&r.drain, "drain", 5*time.Second, "when told to end, wait so long for the connections there are")
	r.Seats.AddFlag(cmd)
	f.BoolVarP(&r.verbose, "verbose", "v", false, "print what each connection had when it ends")
	cli.JSONFlag(cmd, &r.asJSON)
}

// Check is a usage error of the flags.
func (r *Reception) Check() error {
	if r.silence < 0 || r.idle < 0 || r.drain < 0 {
		return cli.Usagef("--silence %v, --idle %v, --drain %v: a time is not negative", r.silence, r.idle, r.drain)
	}
	return r.Seats.Check()
}

// errDrained is why a connection is reset that outlasts its server.
var errDrained = errors.New("the server was told to end, and the connection did not (--drain)")

// Listener is where connections come from. Close ends Accept.
type Listener struct {
	Accept func() (Remote, error)
	Close  func() error
}

// NetListener is one of byte streams.
func NetListener(l net.Listener) Listener {
	return Listener{func() (Remote, error) { return l.Accept() }, l.Close}
}

// Run accepts connections until the command's context ends, then closes the
// listeners, and waits for the connections. at is where they listen.
func (r *Reception) Run(cmd *cobra.Command, at string, listeners ...Listener) error {
	ctx, end := context.WithCancel(cmd.Context())
	defer end()
	r.out, r.failed.W = cli.NewLockedWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
	defer r.failed.Close()
	if err := r.print(Line{Listening: at}); err != nil {
		return err
	}
	life, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	context.AfterFunc(ctx, func() { time.AfterFunc(r.drain, func() { cut(errDrained) }) })
	var all sync.WaitGroup
	errs := make([]error, len(listeners))
	for i, l := range listeners {
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { l.Close() })
			errs[i] = Accept(ctx, l.Accept, &r.Seats, &r.failed, r.Refuse, func(c Remote) bool {
				all.Go(func() { r.serve(life, c) })
				return !r.Once
			})
			if stop() {
				l.Close()
			}
			if errs[i] != nil {
				end()
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, r.print(Line{Total: &r.total}))...)
}

// serve serves a connection, gives its seat back and tells how it ended.
func (r *Reception) serve(ctx context.Context, from Remote) {
	began, n := time.Now(), new(Tally)
	err := r.Serve(ctx, from, n)
	c := n.report()
	c.Client, c.Seconds, c.End = from.RemoteAddr().String(), time.Since(began).Seconds(), "closed"
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		c.End, c.Error = "reset", cli.OneLine(err)
	default:
		c.End, c.Error = "failed", cli.OneLine(err)
		r.failed.Add(fmt.Errorf("client %s: %w", c.Client, err))
	}
	r.Seats.Give(from.RemoteAddr())
	r.mu.Lock()
	r.total.add(c)
	r.mu.Unlock()
	if r.verbose || r.asJSON {
		_ = r.print(Line{Connection: c})
	}
}

// Watch derives the context of a connection, which ends, too, when the tally
// shows that the client is silent (--silence) or idle (--idle).
func (r *Reception) Watch(ctx context.Context, n *Tally) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if r.silence > 0 {
		late := time.AfterFunc(r.silence, func() {
			if n.moved() == 0 {
				cancel(fmt.Errorf("nothing came for %v (--silence)", r.silence))
			}
		})
		context.AfterFunc(ctx, func() { late.Stop() })
	}
	if r.idle > 0 {
		endIdle(ctx, cancel, r.idle, n.moved)
	}
	return ctx, cancel
}

// print prints a line as JSON, or as text.
func (r *Reception) print(line Line) (err error) {
	switch {
	case r.asJSON:
		err = cli.PrintLine(r.out, line)
	case line.Listening != "":
		err = PrintListening(r.out, line.Listening)
	case line.Connection != nil:
		_, err = fmt.Fprintln(r.out, line.Connection)
	case line.Total != nil:
		_, err = fmt.Fprintln(r.out, line.Total)
	}
	return err
}
