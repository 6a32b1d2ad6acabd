package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

// defaultPort is where the server listens for control connections.
const defaultPort = "7471"

type serverOptions struct {
	deviceFlags
	listen    string
	maxBytes  int64
	once      bool
	withStdin bool
	shared    *uapi.Context // the device that was named, if one was
	opts      []uapi.Option
	// session serves one client.
	session func(ctx context.Context, conn net.Conn, o serverOptions, stderr io.Writer) error
}

func newServer() *cobra.Command {
	o := serverOptions{session: serveOne}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve clients of this tool until ended",
		Long: `Serve 'rdmashim client' until ended: give each client memory of the size that it
asks for, to write, read and count in by RDMA, and tell it the digest of what
arrived. Prints 'listening ADDR:PORT'.

Without --device each client is served on the soft device of the address that it
connected to. Clients can make the server allocate up to --max-bytes each.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), o, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", ":"+defaultPort, "address of the control connection, ADDR:PORT; port 0 takes a free one")
	f.Int64Var(&o.maxBytes, "max-bytes", 4<<30, "most memory that one client may ask for")
	f.BoolVar(&o.once, "once", false, "end after one client, with its outcome as exit status")
	f.BoolVar(&o.withStdin, "with-stdin", false, "end when standard input closes, as when the process that started this one has gone")
	return cmd
}

// serve accepts clients until ctx ends.
func serve(ctx context.Context, o serverOptions, stdin io.Reader, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.chooseSeed()
	// A named device is opened at once, so that a wrong name is told at once,
	// and serves all clients.
	if o.device != "" {
		c, err := open(o.name(""), stderr, o.opts...)
		if err != nil {
			return err
		}
		defer c.Close()
		o.shared = c
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w (choose another with --listen ADDR:PORT)", err)
	}
	defer ln.Close()
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

func accept(ctx context.Context, ln net.Listener, o serverOptions, stderr io.Writer) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() == nil {
				return fmt.Errorf("accept a client: %w", err)
			}
			if cause := context.Cause(ctx); errors.Is(cause, errPeerGone) {
				return fmt.Errorf("nobody was served: %w", cause)
			}
			return nil // ended by a signal
		}
		if o.once {
			return o.session(ctx, conn, o, stderr)
		}
		sessions.Go(func() {
			if err := o.session(ctx, conn, o, stderr); err != nil {
				fmt.Fprintf(stderr, "rdmashim: client %v: %s\n", conn.RemoteAddr(), oneLine(err))
			}
		})
	}
}

// serveOne serves the client at the other end of conn.
func serveOne(ctx context.Context, conn net.Conn, o serverOptions, stderr io.Writer) error {
	defer conn.Close()
	s := &serverSession{maxBytes: o.maxBytes}
	s.ctl = newControl(conn)
	if s.rdma = o.shared; s.rdma == nil {
		c, err := openRoute(conn, o.options(), stderr)
		if err != nil {
			_ = s.ctl.send(welcome{Error: err.Error()})
			return err
		}
		defer c.Close()
		s.rdma = c
	}
	return errors.Join(s.run(ctx), s.close())
}
