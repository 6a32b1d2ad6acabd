package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// The two sides of perf talk over the same kind of control connection as those
// of demo: hello and welcome, then of each size go, ready, done and results. That
// it breaks ends whatever a side is doing.

// perfVersion changes when the messages below do.
const perfVersion = 1

// perfHello is the client's first message.
type perfHello struct {
	Perf   int         `json:"perf"` // version
	Config perf.Config `json:"config"`
}

// perfGo asks for a run, or with size 0 says goodbye.
type perfGo struct {
	Size int `json:"size"`
}

// perfReady answers it.
type perfReady struct {
	Error string `json:"error,omitempty"`
}

// perfDone says that the client has sent what it sends.
type perfDone struct {
	Total int `json:"total"` // messages, warm-up included
	// Unchecked: the run was cut short, its data is not to be checked.
	Unchecked bool `json:"unchecked,omitempty"`
}

// perfOutcome ends a run: what the server moved, used and found.
type perfOutcome struct {
	Result perf.Result `json:"result"`
	Total  int         `json:"total"`
	Error  string      `json:"error,omitempty"`
}

// errRunOver ends a side's serving in good order.
var errRunOver = errors.New("the run is over")

// perfConnect bounds how long it takes to make the queue pairs, and then to
// connect them, on a machine that has much else to do.
func perfConnect(c perf.Config) time.Duration {
	return time.Minute + time.Duration(c.QPs)*10*time.Millisecond
}

// watch receives the peer's next message in the background. The context that it
// returns ends with errRunOver when it came, and with an error when it did not.
func watch(ctx context.Context, ctl *control, v any) (context.Context, func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	came := make(chan error, 1)
	go func() {
		err := ctl.receive(v, 0)
		came <- err
		if err == nil {
			err = errRunOver
		}
		cancel(err)
	}()
	return ctx, func() error { return <-came }
}

// cause prefers why ctx ended to the errors that followed from it.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(why, errRunOver) {
		return why
	}
	return err
}

// perfQueuePair is about what a queue pair takes besides its messages, in bytes:
// rings of some pages, and its state.
const perfQueuePair = 16 << 10

// perfIdle is how long a client may be quiet that was asked to be slow.
func perfIdle(limit time.Duration, c perf.Config) time.Duration {
	if limit == 0 {
		return 0
	}
	return limit + c.Slow
}

// servePerf serves the client at the other end of conn.
func servePerf(ctx context.Context, conn net.Conn, o serverOptions, stderr io.Writer) error {
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	ctl := newControl(conn)
	var hello perfHello
	if err := ctl.receive(&hello, peerSilence); err != nil {
		return fmt.Errorf("a client connected, but said nothing useful: %w", err)
	}
	refuse := func(err error) error {
		_ = ctl.send(welcome{Error: err.Error()})
		return err
	}
	if hello.Perf != perfVersion {
		return refuse(fmt.Errorf("the client speaks version %d of perf's protocol, this server %d: use the same rdmashim on both sides", hello.Perf, perfVersion))
	}
	if err := hello.Config.Validate(); err != nil {
		return refuse(err)
	}
	n := hello.Config.Bytes()
	if n > o.limits.maxBytes {
		return refuse(fmt.Errorf("the client wants %d bytes of memory, this server gives at most %d (--max-bytes)", n, o.limits.maxBytes))
	}
	n += int64(hello.Config.QPs) * perfQueuePair
	if err := o.memory.take(n); err != nil {
		return refuse(err)
	}
	defer o.memory.give(n)
	rdma, done, err := o.deviceFor(conn, stderr)
	if err != nil {
		return refuse(err)
	}
	defer done()
	side, err := perf.NewSide(rdma, hello.Config, false)
	if err != nil {
		return refuse(err)
	}
	heard := heardOn(rdma, side.QPs()...)
	s := &perfServer{ctl: ctl, side: side, watch: func() { endIdle(ctx, cancel, perfIdle(o.limits.idle, hello.Config), heard) }}
	err = s.run(ctx, rdma)
	if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
		err = context.Cause(ctx)
	}
	return errors.Join(err, side.Close())
}

// perfServer is the side that answers.
type perfServer struct {
	ctl   *control
	side  *perf.Side
	watch func() // ends the session of an idle client, once it is connected
}

func (s *perfServer) run(ctx context.Context, rdma *uapi.Context) error {
	w := welcome{PID: os.Getpid()}
	var err error
	if w.Device, err = describe(rdma); err != nil {
		w.Error = err.Error()
	}
	if err := errors.Join(err, s.ctl.send(w)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, perfConnect(s.side.Config))
	defer cancel()
	if err := s.side.Connect(limited, s.ctl.conn); err != nil {
		return fmt.Errorf("connect to the client: %w", gone(err))
	}
	go s.watch()
	for {
		var g perfGo
		if err := s.ctl.receive(&g, 0); err != nil {
			return err
		}
		if g.Size == 0 {
			return s.ctl.send(perfReady{})
		}
		err := s.side.Prepare(g.Size)
		ready := perfReady{}
		if err != nil {
			ready.Error = err.Error()
		}
		if err := errors.Join(err, s.ctl.send(ready)); err != nil {
			return err
		}
		if err := s.serve(ctx); err != nil {
			return err
		}
	}
}

// serve is one run.
func (s *perfServer) serve(ctx context.Context) error {
	var done perfDone
	cpu := perf.CPUTime()
	running, came := watch(ctx, s.ctl, &done)
	var out perfOutcome
	var err error
	if s.side.Config.Bidirectional {
		// The client may be through before this side is.
		both, cancel := context.WithCancelCause(ctx)
		gone := context.AfterFunc(running, func() {
			if why := context.Cause(running); !errors.Is(why, errRunOver) {
				cancel(why)
			}
		})
		out.Result, err = s.side.Bandwidth(both)
		gone()
		cancel(nil)
		out.Total = out.Result.Total
	}
	if err == nil {
		err = s.side.Serve(running)
		if errors.Is(context.Cause(running), errRunOver) && done.Unchecked {
			err = nil // the client gave the rest up
		}
	}
	if err != nil {
		_ = s.ctl.send(perfOutcome{Error: err.Error()})
		return cause(running, err)
	}
	if err := came(); err != nil {
		return err
	}
	out.Result.ServerCPU = (perf.CPUTime() - cpu).Seconds()
	if !done.Unchecked {
		if err := s.side.Verify(done.Total); err != nil {
			out.Error = err.Error()
		}
	}
	return s.ctl.send(out)
}
