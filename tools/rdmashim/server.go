package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

// defaultPort is where the server listens for control connections.
const defaultPort = "7471"

type serverOptions struct {
	deviceFlags
	limits    serverLimits
	seats     *clientSeats
	listen    string
	once      bool
	withStdin bool
	shared    *uapi.Context // the device of all clients, if there is one
	memory    *budget       // of all clients
	config    uapi.OpenConfig
	// session serves one client.
	session func(ctx context.Context, conn net.Conn, o serverOptions, stderr io.Writer) error
}

func newServer() *cobra.Command {
	o := serverOptions{session: serveOne, seats: new(clientSeats)}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve clients of this tool until ended",
		Long: `Serve 'rdmashim client' until ended: give each client memory of the size that it
asks for, to write, read and count in by RDMA, and tell it the digest of what
arrived. Prints 'listening ADDR:PORT'.

Without --device each client is served on the soft device of the address that it
connected to; those that are free are opened at once. Clients can make the server
allocate up to --max-bytes each and --max-total together.

It listens on this machine only: to serve others, name an address of it, as in
--listen 192.0.2.7:7471, or all of them by --listen :7471. Anybody who reaches that
is a client.`,
		Example: `  rdmashim server
  rdmashim server --listen :7471 --max-total 8000000000`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.Add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:"+defaultPort, "address of the control connection, ADDR:PORT; port 0 takes a free one")
	o.limits.add(cmd)
	o.seats.add(cmd)
	f.BoolVar(&o.once, "once", false, "end after one client, with its outcome as exit status")
	f.BoolVar(&o.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
	return cmd
}

// serve accepts clients until ctx ends.
func serve(ctx context.Context, o serverOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := cmp.Or(o.limits.complete(o.once), o.seats.complete()); err != nil {
		return err
	}
	o.memory = &budget{total: o.limits.maxTotal}
	o.ChooseSeed()
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w (choose another with --listen ADDR:PORT)", err)
	}
	defer ln.Close()
	done, err := o.openDevices(ln.Addr(), stderr)
	if err != nil {
		return err
	}
	defer done()
	stopClosing := context.AfterFunc(ctx, func() { ln.Close() })
	defer stopClosing()
	if o.withStdin {
		// The process that reads what this one prints may go at any time. That
		// is an error to end with, not a signal to die of.
		signal.Ignore(syscall.SIGPIPE)
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel(fmt.Errorf("%w (standard input closed)", errPeerGone))
		}()
	}
	if _, err := fmt.Fprintf(stdout, "%s%s\n", listeningPrefix, ln.Addr()); err != nil {
		return fmt.Errorf("nobody was served: cannot say where to: %w", err)
	}
	return accept(ctx, ln, o, stderr)
}

// openDevices opens what the server has for its clients before the first comes, so
// that a wrong name is told at once, and that who looks (top, stats) sees it: the device
// that was named, or the one on the address of the listener, for all; on every address
// those that are free, which openRoute finds open.
func (o *serverOptions) openDevices(at net.Addr, stderr io.Writer) (done func(), err error) {
	local, _ := netip.ParseAddrPort(at.String())
	switch name := o.Named(); {
	case name != "":
		o.shared, err = open(name, stderr, o.config)
	case !local.Addr().IsUnspecified():
		o.shared, err = openRoute(at, o.Options(), stderr, o.config)
	default:
		return o.openAll(), nil
	}
	if err != nil {
		return nil, err
	}
	return func() { o.shared.Close() }, nil
}

// openAll opens the soft devices of all addresses. One that is not to be had may be
// when a client comes there.
func (o *serverOptions) openAll() (done func()) {
	var held []*uapi.Context
	list, _ := uapi.Devices()
	for _, d := range list {
		if d.Kind != "soft" {
			continue
		}
		if c, err := uapi.OpenWith(withOptions(d.Device, o.Options()), o.config); err == nil {
			held = append(held, c)
		}
	}
	return func() {
		for _, c := range held {
			c.Close()
		}
	}
}

// deviceFor gives the device that a client is served on, and what ends its use.
func (o *serverOptions) deviceFor(conn net.Conn, stderr io.Writer) (rdma *uapi.Context, done func(), err error) {
	if o.shared != nil {
		return o.shared, func() {}, nil
	}
	c, err := openRoute(conn.LocalAddr(), o.Options(), stderr, o.config)
	return c, func() { c.Close() }, err
}

// serveOne serves the client at the other end of conn.
func serveOne(ctx context.Context, conn net.Conn, o serverOptions, stderr io.Writer) error {
	defer conn.Close()
	s := &serverSession{limits: o.limits, memory: o.memory}
	s.ctl = newControl(conn)
	rdma, done, err := o.deviceFor(conn, stderr)
	if err != nil {
		_ = s.ctl.send(welcome{Error: err.Error()})
		return err
	}
	defer done()
	if err := s.share(rdma); err != nil {
		_ = s.ctl.send(welcome{Error: err.Error()})
		return err
	}
	defer func() { o.memory.give(s.charged) }()
	return errors.Join(s.run(ctx), s.close())
}
