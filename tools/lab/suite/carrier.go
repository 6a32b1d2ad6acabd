package suite

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// stream is the measured thing, whichever carrier opened it.
type stream = io.ReadWriteCloser

// carrier opens streams to another process. Its name is that of a transport,
// tcp, unix or rdma, and of what stands on it, if anything: tcp+tls; or quic. A
// stream of quic or qmux is one of many of a connection; any other is a
// connection.
type carrier struct {
	open func(context.Context) (stream, error)
	more func(context.Context) (stream, error) // on a connection of its own; a registration has it
	end  func()                                // behind the end of all streams

	mu   sync.Mutex
	kept []stream // guarded by mu; nil and full when they were closed
	full bool
}

// keep opens a stream that closeKept closes.
func (c *carrier) keep(ctx context.Context) (stream, error) {
	s, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		s.Close()
	}
	c.kept = append(c.kept, s)
	return s, nil
}

func (c *carrier) closeKept() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.kept {
		s.Close()
	}
	c.kept, c.full = nil, true
}

// newCarrier makes a carrier to where the other side is. device is that of
// rdma.
func newCarrier(ctx context.Context, name, device string, to netip.AddrPort) (*carrier, error) {
	if name == "quic" {
		return newQUIC(ctx, to)
	}
	if strings.HasPrefix(name, onRegistration) {
		return newRegistration(ctx, name, to)
	}
	transport, layer, _ := strings.Cut(name, "+")
	dial := func(ctx context.Context) (net.Conn, error) {
		if transport == "unix" {
			return new(net.Dialer).DialContext(ctx, "unix", unixName(to))
		}
		return new(net.Dialer).DialContext(ctx, "tcp", to.String())
	}
	c := &carrier{end: func() {}}
	if transport == "rdma" {
		own, err := openDevice(device, false)
		if err != nil {
			return nil, err
		}
		d := rdmanet.Dialer{Device: own}
		dial = func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "rdma", to.String()) }
		c.end = func() {
			_ = rdmanet.Flush(ctx)
			_ = own.Close()
		}
	}
	c.open = func(ctx context.Context) (stream, error) { return dial(ctx) }
	c.more = c.keep
	switch layer {
	case "tls":
		c.open = func(ctx context.Context) (stream, error) {
			plain, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			secure := tls.Client(plain, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
			if err := secure.HandshakeContext(ctx); err != nil {
				plain.Close()
				return nil, err
			}
			return secure, nil
		}
	case "qmux":
		plain, err := dial(ctx)
		var q *qmux.Conn
		if err == nil {
			q, err = qmux.Client(plain, nil)
		}
		if err != nil {
			c.end()
			return nil, err
		}
		device := c.end
		c.open = func(ctx context.Context) (stream, error) { return q.OpenStreamSync(ctx) }
		c.end = func() {
			_ = q.CloseWithError(0, "")
			device()
		}
	}
	return c, nil
}

// newQUIC is the carrier of quic-go.
func newQUIC(ctx context.Context, to netip.AddrPort) (*carrier, error) {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	q, err := quic.DialAddr(ctx, to.String(), config, nil)
	if err != nil {
		return nil, err
	}
	return &carrier{
		open: func(ctx context.Context) (stream, error) { return q.OpenStreamSync(ctx) },
		end:  func() { _ = q.CloseWithError(0, "") },
	}, nil
}

// unixName is the abstract name of a UNIX socket beside a TCP port, which its
// owner keeps, so that no other process has the name.
func unixName(at netip.AddrPort) string { return fmt.Sprintf("@rdmashim-perf-%d", at.Port()) }

// openDevice opens the device of one side.
func openDevice(base string, server bool) (*uapi.Device, error) {
	name, client, err := peer.TwoDevices(peer.DefaultDevice(base))
	if err != nil {
		return nil, err
	}
	if !server {
		name = client
	}
	return uapi.Open(name, uapi.OpenConfig{})
}

// serveStreams is the other side of a carrier. It answers its streams, and HTTP
// requests where http stands on a transport.
func serveStreams(ctx context.Context, name, device string, announce func(netip.AddrPort) error) error {
	if name == "quic" {
		return serveQUIC(ctx, announce)
	}
	if strings.HasPrefix(name, onRegistration) {
		return serveRegistration(ctx, name, announce)
	}
	transport, layer, _ := strings.Cut(name, "+")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	switch transport {
	case "unix":
		defer l.Close()
		if l, err = net.Listen("unix", unixName(at)); err != nil {
			return err
		}
	case "rdma":
		l.Close()
		own, err := openDevice(device, true)
		if err != nil {
			return err
		}
		defer own.Close()
		if l, err = rdmanet.ListenOn(own, ":0", rdmanet.Config{}); err != nil {
			return err
		}
		info, err := own.QueryDevice()
		if err != nil {
			return err
		}
		at = netip.AddrPortFrom(info.Address.Addr(), l.Addr().(rdmanet.Addr).Port())
	}
	if layer == "tls" {
		config, err := selfSigned()
		if err != nil {
			return err
		}
		l = tls.NewListener(l, config)
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	defer l.Close()
	if err := announce(at); err != nil {
		return err
	}
	if layer == "http" {
		return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, cpuTime()) }))
	}
	for {
		c, err := l.Accept()
		switch {
		case err != nil:
			return err
		case layer == "qmux":
			go serveQMux(ctx, c)
		default:
			go answer(c)
		}
	}
}

// serveQMux answers the streams of a connection.
func serveQMux(ctx context.Context, c net.Conn) {
	q, err := qmux.Server(c, nil)
	if err == nil {
		serveAll(ctx, q.AcceptStream)
	}
}

// serveAll answers the streams that accept returns.
func serveAll[S stream](ctx context.Context, accept func(context.Context) (S, error)) {
	for {
		s, err := accept(ctx)
		if err != nil {
			return
		}
		go answer(s)
	}
}

// serveQUIC is serveStreams for quic-go.
func serveQUIC(ctx context.Context, announce func(netip.AddrPort) error) error {
	config, err := selfSigned()
	if err != nil {
		return err
	}
	l, err := quic.ListenAddr("127.0.0.1:0", config, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := announce(l.Addr().(*net.UDPAddr).AddrPort()); err != nil {
		return err
	}
	for {
		q, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go serveAll(ctx, q.AcceptStream)
	}
}

// protocol is the ALPN protocol of TLS where there must be one.
const protocol = "rdmashim-perf"

// selfSigned makes a server's configuration, whose certificate is not verified.
func selfSigned() (*tls.Config, error) {
	own, err := peer.SelfSigned()
	return &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}, err
}
