package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// Client is a side that asks: its control connection and its device.
type Client struct {
	*Conn
	Device *uapi.Device
	Own    Side
	// Server is the server's answer, after Greet.
	Server Welcome
}

// Dial connects to the server at addr, HOST:PORT, and opens the device: the one
// that the flags or the environment name, else the soft device of the address
// that the connection has here. start is how a server is started; it is empty
// when the caller has started the server itself, which then has gone if nothing
// listens: ErrGone.
func Dial(ctx context.Context, addr, start string, flags *cli.DeviceFlags, stderr io.Writer, config uapi.OpenConfig) (_ *Client, err error) {
	c := &Client{}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	// A named device is opened before the server is asked, which its faults do
	// not concern. A plain soft one to another machine is put on the
	// connection's address.
	name, options := flags.Named(), flags.Options()
	if kind, own, _ := strings.Cut(name, "?"); kind == "soft" && away(ctx, addr) {
		name, options = "", own
	}
	if name != "" {
		if c.Device, err = cli.Open(name, stderr, config); err != nil {
			return nil, err
		}
	}
	conn, err := (&net.Dialer{Timeout: Silence}).DialContext(ctx, "tcp", addr)
	if err != nil && start == "" {
		return nil, fmt.Errorf("reach the server: %w: %w", ErrGone, err)
	}
	if err != nil {
		return nil, fmt.Errorf("reach the server: %w (is '%s' running there?)", err, start)
	}
	c.Conn = NewConn(conn)
	if c.Device == nil {
		if c.Device, err = openAt(conn.LocalAddr(), options, stderr, config); err != nil {
			return nil, err
		}
	}
	c.Own, err = describe(c.Device)
	return c, err
}

// away reports whether a control connection at HOST:PORT is no loopback one.
func away(ctx context.Context, addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err == nil && !slices.ContainsFunc(list, func(a netip.Addr) bool { return a.IsLoopback() || a.IsUnspecified() })
}

// Greet asks for a job, lets the client prepare while the server does, and
// waits up to limit for the welcome.
func (c *Client) Greet(job string, params any, limit time.Duration, prepare func() error) error {
	hello, err := NewHello(job, params)
	if err == nil {
		err = c.Send(hello)
	}
	if err == nil {
		err = prepare()
	}
	if err != nil {
		return err
	}
	if err := c.Receive(&c.Server, limit); err != nil {
		return fmt.Errorf("wait for the server's welcome: %w", err)
	}
	c.Server.Device.printable()
	if c.Server.Error != "" {
		return fmt.Errorf("the server refused: %s", c.Server.Error)
	}
	return nil
}

// Close closes the connection and the device.
func (c *Client) Close() error {
	var errs []error
	if c.Conn != nil {
		errs = append(errs, c.Conn.Close())
	}
	if c.Device != nil {
		errs = append(errs, c.Device.Close())
	}
	return errors.Join(errs...)
}

// openAt opens the soft device on the address that a control connection uses on
// this side: the one whose packets the route to the peer carries. When
// something holds the RoCE port there (another soft device, a loaded rdma_rxe),
// it takes a free port, which the peer learns from the introduction.
func openAt(own net.Addr, options string, stderr io.Writer, config uapi.OpenConfig) (*uapi.Device, error) {
	local, err := netip.ParseAddrPort(own.String())
	if err != nil {
		return nil, fmt.Errorf("the control connection's own address %v: %w", own, err)
	}
	name := cli.WithOptions(cli.SoftAt(local.Addr()), options)
	d, err := cli.Open(name, stderr, config)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EINVAL) {
		if free, e := cli.Open(cli.WithOptions(name, "port=0"), stderr, config); e == nil {
			return free, nil
		}
	}
	return d, err
}

// HostPort completes HOST to HOST:PORT; IPv6 addresses may come bare.
func HostPort(host string, port uint16) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(port)))
}
