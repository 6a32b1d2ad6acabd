package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

// cmOptions are the flags of the commands that connect by address and port.
type cmOptions struct {
	device string
	listen string
	port   uint16
	once   bool
	seats  clientSeats // how many clients are served at a time
}

func (o *cmOptions) addClient(cmd *cobra.Command, port uint16) {
	cmd.Flags().StringVarP(&o.device, "device", "d", "", "device: soft:ADDRESS or a kernel device's name (default: $RDMASHIM_DEVICE, else by the route to HOST)")
	cmd.Flags().Uint16VarP(&o.port, "port", "p", port, "the server's port")
}

func (o *cmOptions) addServer(cmd *cobra.Command, port uint16) {
	f := cmd.Flags()
	f.StringVarP(&o.device, "device", "d", "", "device: soft, soft:ADDRESS or a kernel device's name (default: $RDMASHIM_DEVICE, else all there are)")
	f.StringVarP(&o.listen, "listen", "a", "", "address to listen on (default: every address of the devices)")
	f.Uint16VarP(&o.port, "port", "p", port, "port; 0 takes a free one")
	f.BoolVar(&o.once, "once", false, "end after one client: exit status 0 if all was right, else 1")
	o.seats.add(cmd)
}

// cmConn is a connection of such a command.
type cmConn struct {
	endpoint
	info uapi.ConnInfo
	out  io.Writer
}

// ended says why a step failed: where a flushed request does not, the connection's
// end does.
func (c *cmConn) ended(err error) error {
	var flushed *uapi.WCError
	if !errors.As(err, &flushed) || flushed.WC.Status != uapi.WCWRFlushErr || flushed.Cause != nil {
		return err
	}
	if cause := c.rdma.Cause(c.qp); cause != nil {
		return fmt.Errorf("%w (%w)", cause, err)
	}
	return err
}

// cmService serves a client: accept makes what is needed and accepts, talk does the rest.
type cmService interface {
	accept(ctx context.Context, c *cmConn, r *uapi.Request) error
	talk(ctx context.Context, c *cmConn) error
}

// serveCM serves clients until ctx ends, or one.
func serveCM(ctx context.Context, o *cmOptions, s cmService, stdout, stderr io.Writer) error {
	if err := o.seats.complete(); err != nil {
		return err
	}
	devices, err := openToServe(o.device, stderr)
	if err != nil {
		return err
	}
	defer func() {
		for _, c := range devices {
			c.Close()
		}
	}()
	l, err := uapi.Listen(net.JoinHostPort(o.listen, strconv.Itoa(int(o.port))))
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := fmt.Fprintf(stdout, "%s%s\n", listeningPrefix, l.Addr()); err != nil {
		return fmt.Errorf("nobody was served: cannot say where to: %w", err)
	}
	failed := &failureLog{w: stderr}
	defer failed.close()
	var clients sync.WaitGroup
	defer clients.Wait()
	out := &lockedWriter{w: stdout}
	for {
		r, err := l.Accept(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // ended by a signal
		case err != nil:
			return err
		case o.once:
			return serveRequest(ctx, r, s, &o.seats, out)
		}
		clients.Go(func() {
			if err := serveRequest(ctx, r, s, &o.seats, out); err != nil {
				failed.add(err)
			}
		})
	}
}

// serveRequest serves one client. A client has its seat when it has confirmed the
// connection, so that requests from addresses that were made up take none.
func serveRequest(ctx context.Context, r *uapi.Request, s cmService, seats *clientSeats, out io.Writer) error {
	c := &cmConn{out: out}
	err := seats.left()
	if err == nil {
		err = c.share(r.Context)
	}
	if err == nil {
		err = s.accept(ctx, c, r)
	}
	if err == nil {
		if err = seats.take(); err == nil {
			err = s.talk(ctx, c)
			seats.give()
		}
	} else {
		_ = r.Reject(0, rejection(err)) // unless it was answered
	}
	if e := c.close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("client %v: %w", r.RemoteAddr, err)
	}
	return nil
}

// rejection is what a client is told with its rejection.
func rejection(err error) []byte {
	if errors.Is(err, errNoSeat) {
		return []byte(errNoSeat.Error())
	}
	return nil
}

// rejectedWith is what a server told with its rejection, if it is text.
func rejectedWith(err error) string {
	var rejected *uapi.RejectError
	if !errors.As(err, &rejected) {
		return ""
	}
	said, _, _ := bytes.Cut(rejected.PrivateData, []byte{0})
	return string(said)
}

// accepted makes the queue pair, posts the receives, and accepts.
func (c *cmConn) accepted(ctx context.Context, r *uapi.Request, config uapi.QPConfig, post func() error, private []byte) (err error) {
	config.PD = c.pd
	qp, err := r.CreateQP(config)
	if err != nil {
		return err
	}
	c.qp = qp
	if post != nil {
		if err := post(); err != nil {
			_ = r.Reject(0, nil)
			c.qp = 0
			return err
		}
	}
	if _, err := r.Accept(ctx, private); err != nil {
		c.qp = 0
		return err
	}
	c.info, err = c.rdma.QueryConn(qp)
	return err
}

// peerLeaves waits until the peer has disconnected, which is how a good talk ends.
func (c *cmConn) peerLeaves(ctx context.Context) error {
	select {
	case <-c.rdma.Done(c.qp):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if cause := c.rdma.Cause(c.qp); !errors.Is(cause, uapi.ErrPeerDisconnected) {
		return cause
	}
	return nil
}

// cmClient connects to the server at host and talks.
func cmClient(ctx context.Context, o *cmOptions, host, server string, out, stderr io.Writer, dial func(ctx context.Context, c *cmConn, addr string) error, talk func(context.Context, *cmConn) error) error {
	addr := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		addr = net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(o.port)))
	}
	c := &cmConn{out: out}
	var err error
	if o.device != "" {
		c.rdma, err = open(o.device, stderr, uapi.OpenConfig{})
	} else {
		c.rdma, err = uapi.OpenRoute(ctx, addr, uapi.OpenConfig{})
	}
	if err != nil {
		return err
	}
	defer c.rdma.Close()
	if err = dial(ctx, c, addr); err == nil {
		if err = talk(ctx, c); err == nil {
			err = c.rdma.Disconnect(c.qp)
		}
	} else if said := rejectedWith(err); said != "" {
		err = fmt.Errorf("%w: %q", err, said)
	} else if errors.Is(err, uapi.ErrRefused) || errors.Is(err, uapi.ErrUnreachable) {
		err = fmt.Errorf("%w (is 'rdmashim %s server' running there?)", err, server)
	}
	return errors.Join(err, c.close())
}

// connected dials and keeps what the peer said.
func (c *cmConn) connected(ctx context.Context, addr string, config uapi.DialConfig) (err error) {
	if c.qp, err = c.rdma.Dial(ctx, addr, config); err != nil {
		c.qp = 0
		return err
	}
	c.info, err = c.rdma.QueryConn(c.qp)
	return err
}

// lockedWriter keeps the lines of clients that are served at once whole.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// openToServe opens the named device, or all there are: the kernel's, and a soft device on every other
// address of this machine.
func openToServe(name string, stderr io.Writer) ([]*uapi.Context, error) {
	if name != "" || os.Getenv("RDMASHIM_DEVICE") != "" {
		c, err := open(name, stderr, uapi.OpenConfig{})
		if err != nil {
			return nil, err
		}
		return []*uapi.Context{c}, nil
	}
	list, err := uapi.Devices()
	if err != nil {
		return nil, err
	}
	var devices []*uapi.Context
	var tried []error
	taken := map[netip.Addr]bool{}
	for _, kind := range []string{"host", "soft"} {
		for _, d := range list {
			if d.Kind != kind || d.PortState != "ACTIVE" || kind == "soft" && taken[d.GIDs[0].Addr] {
				continue
			}
			var c *uapi.Context
			if kind == "host" {
				c, err = uapi.Open(d.Device)
			} else { // beside another server's, where there is one
				c, err = uapi.OpenLocal(d.Address.Addr().String(), uapi.OpenConfig{Kinds: []string{kind}})
			}
			if err != nil {
				tried = append(tried, err)
				continue
			}
			devices = append(devices, c)
			for _, g := range d.GIDs {
				taken[g.Addr] = true
			}
		}
	}
	if len(devices) == 0 {
		return nil, fmt.Errorf("no device to serve on; name one with --device, or make one with 'rdmashim link up': %w", errors.Join(tried...))
	}
	return devices, nil
}
