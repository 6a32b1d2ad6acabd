package sample

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rpc"
	"github.com/rdmashim/rdmashim/uapi/rpc/session"
)

// Ports of the samples that are services of gRPC's.
const (
	counterPort = 7475
	kvPort      = 7476
)

// link is the device that a service or its client goes by, as flags say.
type link struct {
	device cli.DeviceFlags
}

func (l *link) flags(cmd *cobra.Command) { l.device.Add(cmd) }

// open opens the device that the flags name; nil if they name none. A soft
// device without an address is put where soft says.
func (l *link) open(soft string, stderr io.Writer) (*uapi.Context, error) {
	l.device.ChooseSeed()
	name, options := l.device.Named(), l.device.Options()
	if kind, own, _ := strings.Cut(name, "?"); kind == "soft" {
		name, options = "", own
	}
	switch {
	case name == "" && options == "":
		return nil, nil
	case name == "":
		name = cli.WithOptions(soft, options)
	}
	return cli.Open(name, stderr, uapi.OpenConfig{})
}

// service is the server of a sample.
type service struct {
	link
	listen    string
	withStdin bool
	register  func(grpc.ServiceRegistrar)
	chaos     *cutter // nil: no connection is cut
}

func (s *service) flags(cmd *cobra.Command, port uint16) {
	s.link.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&s.listen, "listen", peer.HostPort("127.0.0.1", port), "address to listen on, ADDR:PORT; port 0 takes a free one")
	f.BoolVar(&s.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
}

// run serves until the command's context ends.
func (s *service) run(cmd *cobra.Command, config rpc.ServerConfig) error {
	at, err := netip.ParseAddrPort(s.listen)
	if err != nil || at.Addr().IsUnspecified() {
		return cli.Usagef("--listen %q: want the ADDR:PORT of one device", s.listen)
	}
	device, err := s.link.open(cli.SoftAt(at.Addr()), cmd.ErrOrStderr())
	if device == nil && err == nil {
		device, err = uapi.OpenLocal(s.listen, uapi.OpenConfig{})
	}
	if err != nil {
		return err
	}
	defer device.Close()
	l, err := device.Listen(s.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	server := rpc.NewServer(config)
	s.register(server)
	if s.chaos != nil {
		s.chaos.sessions = server.Sessions()
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	if s.withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, cmd.InOrStdin())
			cancel()
		}()
	}
	if err := peer.SayListening(cmd.OutOrStdout(), l.Addr()); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err = server.Serve(l)
	server.Stop()
	return err
}

// cutter breaks connections of a server.
type cutter struct {
	sessions *session.Server
	cuts     atomic.Uint64
}

// cut breaks a random connection.
func (c *cutter) cut() {
	if c.sessions.Cut() {
		c.cuts.Add(1)
	}
}

// caller is the client of a sample.
type caller struct {
	link
	words string // the server's command, below rdmashim
}

// dial makes a connection to the server at an address. The caller calls done in
// the end.
func (c *caller) dial(cmd *cobra.Command, address string, options ...grpc.CallOption) (conn *rpc.ClientConn, done func() error, err error) {
	device, err := c.link.open("soft", cmd.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	conn, err = rpc.Dial(cmd.Context(), address, rpc.ClientConfig{Context: device, CallOptions: options})
	if err != nil {
		if device != nil {
			_ = device.Close()
		}
		return nil, nil, err
	}
	return conn, func() error {
		err := conn.Close()
		if device != nil {
			err = errors.Join(err, device.Close())
		}
		return err
	}, nil
}

// reached is a call's error with a hint for a server that is not there.
func (c *caller) reached(err error) error {
	if status.Code(err) == codes.Unavailable {
		return fmt.Errorf("%w (is 'rdmashim %s' running there?)", plainly(err), c.words)
	}
	return plainly(err)
}

// plainly is a status as a person reads it.
func plainly(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return fmt.Errorf("%s: %s", s.Code(), cmp.Or(s.Message(), "no text"))
	}
	return err
}
