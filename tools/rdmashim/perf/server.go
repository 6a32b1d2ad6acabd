package perf

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// The job's messages, after hello and welcome: of each size start, ready, done
// and outcome.

// job is perf's on the control connection. A client's hello has its Config.
const job = "perf server"

// start asks for a run, or with size 0 says goodbye.
type start struct {
	Size int `json:"size"`
}

// ready answers it.
type ready struct {
	Error string `json:"error,omitempty"`
}

// done says that the client has sent all its messages.
type done struct {
	Total int `json:"total"` // messages, warm-up included
	// Unchecked: the run was cut short, its data is not to be checked.
	Unchecked bool `json:"unchecked,omitempty"`
}

// outcome ends a run: what the server moved, used and found.
type outcome struct {
	Result Result `json:"result"`
	Total  int    `json:"total"`
	Error  string `json:"error,omitempty"`
}

// defaultPort is where the server listens, as perftest's do.
const defaultPort = 18515

// connectLimit bounds how long it takes to make the queue pairs, and then to
// connect them, on a machine that has much else to do.
func connectLimit(c Config) time.Duration {
	return time.Minute + time.Duration(c.QPs)*10*time.Millisecond
}

func connect(ctx context.Context, s *Side, c *peer.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectLimit(s.Config))
	defer cancel()
	return peer.Gone(s.Connect(ctx, c.Conn))
}

func newServer() *cobra.Command {
	var g gate
	s := &peer.Server{Job: job, Serve: func(ctx context.Context, c *peer.Session) error { return serve(ctx, c, &g) }}
	var port uint16
	gid := -1
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve 'rdmashim perf … HOST' until ended",
		Long: `Serve 'rdmashim perf … HOST' until ended. Prints 'listening ADDR:PORT'.

Without --device each client is served on the soft device of the address that it
connected to. Clients can make the server allocate up to --max-bytes each and
--max-total together.`,
		Example: "  rdmashim perf server",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Config = gidConfig(gid)
			if !cmd.Flags().Changed("listen") {
				s.Listen = fmt.Sprintf(":%d", port)
			}
			return s.Run(cmd)
		},
	}
	s.AddFlags(cmd)
	f := cmd.Flags()
	f.Uint16VarP(&port, "port", "p", defaultPort, "TCP port to listen on; 0 takes a free one")
	f.StringVar(&s.Listen, "listen", "", "address to listen on, ADDR:PORT, instead of every address")
	f.IntVarP(&gid, "gid-index", "x", -1, "index in the device's table of addresses (default: chosen)")
	f.Lookup("gid-index").DefValue = "0" // said in words
	f.IntVar(&g.missing, "together", 0, "let the first run begin when so many clients are connected")
	_ = f.MarkHidden("together")
	return cmd
}

// gate lets clients begin together, however long each of them took to start.
type gate struct {
	mu      sync.Mutex
	missing int           // guarded by mu: clients that have not come
	open    chan struct{} // guarded by mu; nil until the first came
}

// pass waits until all have come, or ctx ends.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
	if g.missing--; g.missing <= 0 {
		select {
		case <-g.open:
		default:
			close(g.open)
		}
	}
	g.mu.Unlock()
	select {
	case <-g.open:
	case <-ctx.Done():
	}
}

// server is the side that answers.
type server struct {
	*peer.Session
	side *Side
	gate *gate
}

// serve serves one client.
func serve(ctx context.Context, c *peer.Session, g *gate) error {
	s := &server{Session: c, gate: g}
	if err := s.prepare(); err != nil {
		return c.Refuse(err)
	}
	return errors.Join(s.run(ctx), s.side.Close())
}

func (s *server) prepare() error {
	var c Config
	if err := s.Params(&c); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	err := s.Charge(c.Bytes(), c.besides())
	if err == nil {
		s.side, err = NewSide(s.Device, c, false)
	}
	return err
}

func (s *server) run(ctx context.Context) error {
	if err := s.Welcome(); err != nil {
		return err
	}
	if err := connect(ctx, s.side, s.Conn); err != nil {
		return fmt.Errorf("connect to the client: %w", err)
	}
	s.EndIdle(ctx, s.side.Config.Slow, s.side.qps...)
	for first := true; ; first = false {
		var g start
		if err := s.Receive(&g, 0); err != nil {
			return err
		}
		if g.Size == 0 {
			return s.Send(ready{})
		}
		err := s.side.Prepare(g.Size)
		answer := ready{}
		if err != nil {
			answer.Error = err.Error()
		}
		if first {
			s.gate.pass(ctx)
		}
		if err := errors.Join(err, s.Send(answer)); err != nil {
			return err
		}
		if err := s.answer(ctx); err != nil {
			return err
		}
	}
}

// answer is one run.
func (s *server) answer(ctx context.Context) error {
	var said done
	cpu := CPUTime()
	running, came := s.Watch(ctx, &said, peer.ErrCame)
	var out outcome
	var err error
	if s.side.Config.Bidirectional {
		// The client may be through before this side is.
		both, cancel := context.WithCancelCause(ctx)
		gone := context.AfterFunc(running, func() {
			if why := context.Cause(running); !errors.Is(why, peer.ErrCame) {
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
		if errors.Is(context.Cause(running), peer.ErrCame) && said.Unchecked {
			err = nil // the client gave the rest up
		}
	}
	if err != nil {
		_ = s.Send(outcome{Error: err.Error()})
		return peer.Cause(running, err)
	}
	if err := came(); err != nil {
		return err
	}
	out.Result.ServerCPU = (CPUTime() - cpu).Seconds()
	if !said.Unchecked {
		if err := s.side.Verify(said.Total); err != nil {
			out.Error = err.Error()
		}
	}
	return s.Send(out)
}
