package peer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// Server serves the clients of one job.
type Server struct {
	Job    string
	Device cli.DeviceFlags
	Listen string
	Config uapi.OpenConfig
	// Serve serves one client. It answers with Session.Welcome.
	Serve func(context.Context, *Session) error

	limits    limits
	seats     Seats
	memory    budget
	once      bool
	withStdin bool
	shared    *uapi.Device // the device of all clients, if there is one
	stderr    io.Writer
}

// AddFlags adds the flags of a server to its command, but that of where it
// listens.
func (s *Server) AddFlags(cmd *cobra.Command) {
	s.Device.Add(cmd)
	s.limits.add(cmd)
	s.seats.AddFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&s.once, "once", false, "end after one client, with its outcome as exit status")
	f.BoolVar(&s.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
}

// Run accepts clients until the command's context ends.
func (s *Server) Run(cmd *cobra.Command) error {
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	if err := cmp.Or(s.limits.complete(s.once), s.seats.Check()); err != nil {
		return err
	}
	s.memory.total, s.stderr = s.limits.maxTotal, cmd.ErrOrStderr()
	s.Device.ChooseSeed()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w (choose another with --listen ADDR:PORT)", err)
	}
	defer ln.Close()
	done, err := s.openDevices(ln.Addr())
	if err != nil {
		return err
	}
	defer done()
	stopClosing := context.AfterFunc(ctx, func() { ln.Close() })
	defer stopClosing()
	if s.withStdin {
		// The process that reads what this one prints may go at any time. That
		// is an error to end with, not a signal to die of.
		signal.Ignore(syscall.SIGPIPE)
		go EndWithStdin(cmd, cancel)
	}
	if err := PrintListening(cmd.OutOrStdout(), ln.Addr()); err != nil {
		return err
	}
	return s.accept(ctx, ln)
}

// EndWithStdin cancels a server when its standard input closes, as when the
// process that started it has gone.
func EndWithStdin(cmd *cobra.Command, cancel context.CancelCauseFunc) {
	_, _ = io.Copy(io.Discard, cmd.InOrStdin())
	cancel(fmt.Errorf("%w (standard input closed)", ErrGone))
}

// openDevices opens the server's devices before the first client comes, so that
// a wrong name is told at once, and stats and top show it: the device that was
// named, or the one on the listener's address, for all; a server on every
// address holds those of all addresses that it gets.
func (s *Server) openDevices(at net.Addr) (done func(), err error) {
	local, _ := netip.ParseAddrPort(at.String())
	name, options := s.Device.Named(), s.Device.Options()
	if kind, own, _ := strings.Cut(name, "?"); kind == "soft" && !local.Addr().IsLoopback() && !local.Addr().IsUnspecified() {
		name, options = "", own
	}
	switch {
	case name != "":
		s.shared, err = cli.Open(name, s.stderr, s.Config)
	case !local.Addr().IsUnspecified():
		s.shared, err = openAt(at, options, s.stderr, s.Config)
	default:
		var held []*uapi.Device
		list, _ := uapi.Devices()
		for _, d := range list {
			if d.Kind == "soft" {
				if c, err := uapi.Open(cli.WithOptions(d.Device, s.Device.Options()), s.Config); err == nil {
					held = append(held, c)
				}
			}
		}
		return func() {
			for _, c := range held {
				c.Close()
			}
		}, nil
	}
	if err != nil {
		return nil, err
	}
	return func() { s.shared.Close() }, nil
}

// PrintListening prints where a server listens.
func PrintListening(w io.Writer, at any) error {
	if _, err := fmt.Fprintf(w, "%s%v\n", cli.ListeningPrefix, at); err != nil {
		return fmt.Errorf("nobody was served: cannot say where to: %w", err)
	}
	return nil
}

// accept serves clients until ctx ends, or one.
func (s *Server) accept(ctx context.Context, ln net.Listener) error {
	failed := &FailureLog{W: s.stderr}
	defer failed.Close()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	refuse := func(conn net.Conn, why error) {
		_ = NewConn(conn).Send(Welcome{Error: why.Error()}) // it fits the connection's empty buffer
		_ = conn.Close()
	}
	served, outcome := false, error(nil)
	err := Accept(ctx, ln.Accept, &s.seats, failed, refuse, func(conn net.Conn) bool {
		if s.once {
			served, outcome = true, s.serve(ctx, conn)
			return false
		}
		sessions.Go(func() {
			defer s.seats.Give(conn.RemoteAddr())
			if err := s.serve(ctx, conn); err != nil {
				failed.Add(fmt.Errorf("client %v: %w", conn.RemoteAddr(), err))
			}
		})
		return true
	})
	if cause := context.Cause(ctx); err == nil && !served && errors.Is(cause, ErrGone) {
		return fmt.Errorf("nobody was served: %w", cause)
	}
	return cmp.Or(err, outcome)
}

// Session is the server's side of a client.
type Session struct {
	*Conn
	Device *uapi.Device // after Charge

	server  *Server
	params  json.RawMessage
	cancel  context.CancelCauseFunc
	charged int64
	done    func() // gives the device back
}

// serve serves the client at the other end of conn. The connection closes when
// ctx ends.
func (s *Server) serve(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c := &Session{Conn: NewConn(conn), server: s, cancel: cancel}
	defer func() {
		s.memory.give(c.charged)
		if c.done != nil {
			c.done()
		}
	}()
	var hello Hello
	if err := c.Receive(&hello, Silence); err != nil {
		return fmt.Errorf("a client connected, but said nothing useful: %w", err)
	}
	switch {
	case hello.Version != version:
		return c.Refuse(fmt.Errorf("the client speaks version %d of the control protocol, this server %d: use the same rdmashim on both sides", hello.Version, version))
	case hello.Job != s.Job:
		return c.Refuse(fmt.Errorf("this is 'rdmashim %s', and the client looks for %q", s.Job, hello.Job))
	}
	c.params = hello.Params
	err := s.Serve(ctx, c)
	if ctx.Err() != nil && errors.Is(err, net.ErrClosed) {
		err = context.Cause(ctx)
	}
	return err
}

// Params decodes what the client asked for.
func (c *Session) Params(v any) error {
	if err := json.Unmarshal(c.params, v); err != nil {
		return fmt.Errorf("the client's wishes are not understood: %w", err)
	}
	return nil
}

// Charge reserves the client's memory, and its other costs, until the session
// ends, and opens the device.
func (c *Session) Charge(bytes, besides int64) (err error) {
	s := c.server
	if bytes < 0 || bytes > s.limits.maxBytes {
		return fmt.Errorf("the client wants %d bytes of memory, this server gives at most %d (--max-bytes)", bytes, s.limits.maxBytes)
	}
	if err := s.memory.take(bytes + besides); err != nil {
		return err
	}
	c.charged = bytes + besides
	if c.Device = s.shared; c.Device == nil {
		if c.Device, err = openAt(c.LocalAddr(), s.Device.Options(), s.stderr, s.Config); err == nil {
			c.done = func() { c.Device.Close() }
		}
	}
	return err
}

// Refuse tells the client why it is not served, and returns that.
func (c *Session) Refuse(err error) error {
	_ = c.Send(Welcome{Error: err.Error()})
	return err
}

// Welcome tells the client that the server is ready.
func (c *Session) Welcome() error {
	own, err := describe(c.Device)
	if err != nil {
		return c.Refuse(err)
	}
	return c.Send(Welcome{PID: os.Getpid(), Device: own})
}

// EndIdle ends the session when nothing has come to the queue pairs for as long
// as the server bears, and grace.
func (c *Session) EndIdle(ctx context.Context, grace time.Duration, qps ...uapi.QP) {
	if limit := c.server.limits.idle; limit > 0 {
		endIdle(ctx, c.cancel, limit+grace, arrivedOn(c.Device, qps...))
	}
}
