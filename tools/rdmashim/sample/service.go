package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
)

// Ports of the samples that are services of gRPC's.
const (
	counterPort = 7475
	kvPort      = 7476
)

// link is how a service and its clients reach each other, as their flags say:
// grpc-go over RDMA, or over TCP.
type link struct {
	device cli.DeviceFlags
	tcp    bool
}

func (l *link) flags(cmd *cobra.Command) {
	l.device.Add(cmd)
	cmd.Flags().BoolVar(&l.tcp, "tcp", false, "over TCP, for comparison")
}

// open opens the devices. A plain soft device of a server's is put on the
// address that it listens on.
func (l *link) open(address string, server bool, stderr io.Writer) (*stream.Link, error) {
	if l.tcp {
		return stream.OpenLink("tcp", address, "", server, stderr)
	}
	l.device.ChooseSeed()
	name := l.device.Named()
	if options := l.device.Options(); name == "" && options != "" {
		name = cli.WithOptions("soft", options)
	}
	return stream.OpenLink("rdma", address, name, server, stderr)
}

// service is the server of a sample.
type service struct {
	link
	listen    string
	withStdin bool
	register  func(grpc.ServiceRegistrar)
	cutter    *cutter // nil: no connection is cut
}

func (s *service) flags(cmd *cobra.Command, port uint16) {
	s.link.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", peer.HostPort("127.0.0.1", port), "address to listen on, ADDR:PORT; port 0 takes a free one")
	f.BoolVar(&s.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
}

// run serves until the command's context ends.
func (s *service) run(cmd *cobra.Command, options ...grpc.ServerOption) error {
	link, err := s.link.open(s.listen, true, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer link.Close()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	l, err := link.Listen(ctx)
	if err != nil {
		return err
	}
	if s.cutter != nil {
		s.cutter.Listener, l = l, s.cutter
	}
	server := grpc.NewServer(append(options, grpc.WaitForHandlers(true))...)
	s.register(server)
	if s.withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, cmd.InOrStdin())
			cancel()
		}()
	}
	if err := peer.SayListening(cmd.OutOrStdout(), l.Addr()); err != nil {
		_ = l.Close()
		return err
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	return server.Serve(l)
}

// cutter is a listener that can cut one of its connections.
type cutter struct {
	net.Listener

	mu    sync.Mutex
	conns []net.Conn // guarded by mu; the most recent, which may have ended
	count uint64     // guarded by mu
}

// cutterMost bounds the connections among which one is cut.
const cutterMost = 64

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.conns = c.conns[max(0, len(c.conns)-cutterMost):]
		c.mu.Unlock()
	}
	return conn, err
}

// cut breaks a random connection.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.conns) == 0 {
		return
	}
	i := rand.IntN(len(c.conns))
	stream.Reset(c.conns[i])
	c.conns = append(c.conns[:i], c.conns[i+1:]...)
	c.count++
}

func (c *cutter) cuts() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// caller is the client of a sample.
type caller struct {
	link
	words string // the server's command, below rdmashim
}

// dial connects to the server at an address. The caller calls done in the end.
func (c *caller) dial(cmd *cobra.Command, address string, options ...grpc.CallOption) (conn *grpc.ClientConn, done func() error, err error) {
	link, err := c.link.open(address, false, cmd.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	first, err := link.Dial(cmd.Context())
	if err != nil {
		link.Close()
		return nil, nil, fmt.Errorf("%w (is 'rdmashim %s' running there?)", err, c.words)
	}
	given := make(chan net.Conn, 1)
	given <- first
	conn, err = grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(options...),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 10 * time.Second, Backoff: reconnect}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case first := <-given:
				return first, nil
			default:
				return link.Dial(ctx)
			}
		}))
	if err != nil {
		_ = first.Close()
		link.Close()
		return nil, nil, err
	}
	return conn, func() error {
		err := conn.Close()
		select {
		case unused := <-given:
			err = errors.Join(err, unused.Close())
		default:
		}
		link.Close()
		return err
	}, nil
}

// reconnect is how long a client waits between its attempts.
var reconnect = backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}

// plainly is a status as a person reads it.
func plainly(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("%s: %s", s.Code(), cmp.Or(s.Message(), "no text"))
	}
	return err
}
