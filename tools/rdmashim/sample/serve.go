package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// program is a sample in both of its roles.
type program interface {
	// accept makes the server's objects and accepts; answer does the rest.
	accept(ctx context.Context, c *conn, r *uapi.Request) error
	answer(ctx context.Context, c *conn) error
	// dial makes the client's objects and connects; ask does the rest.
	dial(ctx context.Context, c *conn, addr string) error
	ask(ctx context.Context, c *conn) error
}

// role is a server or a client.
type role struct {
	program
	words  string // the command's, below rdmashim
	device string
	listen string
	port   uint16
	once   bool
	seats  peer.Seats
	stdout io.Writer
	stderr io.Writer
}

// addRoles adds a program's server and client to its command.
func addRoles(cmd *cobra.Command, p program, words string, port uint16) (server, client *cobra.Command) {
	s := &role{program: p}
	server = &cobra.Command{
		Use:     "server",
		Short:   "Serve clients until ended; prints 'listening ADDR:PORT'",
		Example: "  rdmashim " + words + " server --once",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.stdout, s.stderr = cli.NewLockedWriter(cmd.OutOrStdout()), cmd.ErrOrStderr()
			return s.serve(cmd.Context())
		},
	}
	f := server.Flags()
	f.StringVarP(&s.device, "device", "d", "", "device: soft, soft:ADDRESS or a kernel device's name (default: $RDMASHIM_DEVICE, else all there are)")
	f.StringVarP(&s.listen, "listen", "a", "", "address to listen on (default: every address of the devices)")
	f.Uint16VarP(&s.port, "port", "p", port, "port; 0 takes a free one")
	f.BoolVar(&s.once, "once", false, "end after one client: exit status 0 if all was right, else 1")
	s.seats.AddFlag(server)
	c := &role{program: p, words: words}
	client = &cobra.Command{
		Use:     "client HOST[:PORT]",
		Short:   "Connect to a server, move the data, and check it",
		Example: "  rdmashim " + words + " client 192.0.2.7",
		Args:    cli.Host(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdout, c.stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.call(cmd.Context(), peer.HostPort(args[0], c.port))
		},
	}
	f = client.Flags()
	f.StringVarP(&c.device, "device", "d", "", "device: soft:ADDRESS or a kernel device's name (default: $RDMASHIM_DEVICE, else by the route to HOST)")
	f.Uint16VarP(&c.port, "port", "p", port, "the server's port")
	cmd.AddCommand(server, client)
	return server, client
}

// conn is a connection of a program.
type conn struct {
	peer.Endpoint
	info uapi.ConnInfo
	out  io.Writer
}

// serve serves clients until ctx ends, or one.
func (s *role) serve(ctx context.Context) error {
	if err := s.seats.Check(); err != nil {
		return err
	}
	l, end, err := peer.Listen(s.device, s.listen, s.port, s.stdout, s.stderr)
	if err != nil {
		return err
	}
	defer end()
	failed := &peer.FailureLog{W: s.stderr}
	defer failed.Close()
	var clients sync.WaitGroup
	defer clients.Wait()
	for {
		r, err := l.Accept(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // ended by a signal
		case err != nil:
			return err
		case s.once:
			return s.serveOne(ctx, r)
		}
		clients.Go(func() {
			if err := s.serveOne(ctx, r); err != nil {
				failed.Add(err)
			}
		})
	}
}

// serveOne serves one client. A client has its seat when it has confirmed the
// connection, so that requests from addresses that were made up take none.
func (s *role) serveOne(ctx context.Context, r *uapi.Request) error {
	c := &conn{out: s.stdout}
	err := s.seats.Left(r.RemoteAddr)
	if err == nil {
		err = c.Share(r.Device)
	}
	if err == nil {
		err = s.accept(ctx, c, r)
	}
	if err == nil {
		if err = s.seats.Take(r.RemoteAddr); err == nil {
			err = s.answer(ctx, c)
			s.seats.Give(r.RemoteAddr)
		}
	} else {
		var said []byte
		if errors.Is(err, peer.ErrNoSeat) {
			said = []byte(err.Error())
		}
		_ = r.Reject(0, said) // unless it was answered
	}
	err = cmp.Or(err, c.Close())
	if err != nil {
		return fmt.Errorf("client %v: %w", r.RemoteAddr, err)
	}
	return nil
}

// accepted makes the queue pair, posts the receives, and accepts.
func (c *conn) accepted(ctx context.Context, r *uapi.Request, config uapi.QPConfig, post func() error, private []byte) (err error) {
	config.PD = c.PD
	qp, err := r.CreateQPWith(config)
	if err != nil {
		return err
	}
	c.QP = qp
	if err := post(); err != nil {
		_ = r.Reject(0, nil)
		c.QP = 0
		return err
	}
	if _, err := r.Accept(ctx, private); err != nil {
		c.QP = 0
		return err
	}
	c.info, err = c.RDMA.QueryConn(qp)
	return err
}

// peerLeaves waits until the peer has disconnected, which is how a good talk
// ends.
func (c *conn) peerLeaves(ctx context.Context) error {
	select {
	case <-c.RDMA.Done(c.QP):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	cause, err := c.RDMA.Cause(c.QP)
	if errors.Is(cause, uapi.ErrPeerDisconnected) {
		return nil
	}
	return cmp.Or(err, cause)
}

// call connects to the server at addr and asks.
func (s *role) call(ctx context.Context, addr string) (err error) {
	c := &conn{out: s.stdout}
	if c.RDMA, err = peer.OpenToDial(ctx, s.device, addr, s.stderr); err != nil {
		return err
	}
	defer c.RDMA.Close()
	var rejected *uapi.RejectError
	if err = s.dial(ctx, c, addr); err == nil {
		if err = s.ask(ctx, c); err == nil {
			err = c.RDMA.Disconnect(c.QP)
		}
	} else if errors.As(err, &rejected) && len(text(rejected.PrivateData)) > 0 {
		err = fmt.Errorf("%w: %q", err, text(rejected.PrivateData))
	} else if errors.Is(err, uapi.ErrRefused) || errors.Is(err, uapi.ErrUnreachable) {
		err = fmt.Errorf("%w (is 'rdmashim %s server' running there?)", err, s.words)
	}
	return errors.Join(err, c.Close())
}

// connected dials and keeps the peer's answer.
func (c *conn) connected(ctx context.Context, addr string, config uapi.DialConfig) (err error) {
	if c.QP, err = c.RDMA.Dial(ctx, addr, config); err != nil {
		c.QP = 0
		return err
	}
	c.info, err = c.RDMA.QueryConn(c.QP)
	return err
}

// ended says why a step failed: where a flushed request does not, the
// connection's end does.
func (c *conn) ended(err error) error {
	var flushed *uapi.WCError
	if !errors.As(err, &flushed) || flushed.WC.Status != uapi.WCWRFlushErr || flushed.Cause != nil {
		return err
	}
	if cause, _ := c.RDMA.Cause(c.QP); cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}
