package suite

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi/registration"
	"github.com/rdmashim/rdmashim/uapi/registration/quicudp"
)

// onRegistration is the prefix of carriers that are a registration's, of the
// transport that follows it: soft, soft+tls, tcp+tls, udp.
const onRegistration = "registration "

// openRegistration opens a registration of a carrier's name.
func openRegistration(ctx context.Context, name string) (*registration.Registration, error) {
	kind, layer, _ := strings.Cut(strings.TrimPrefix(name, onRegistration), "+")
	c := registration.Config{Insecure: layer == "" && kind != "udp"}
	if !c.Insecure {
		c.TLS = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}, MinVersion: tls.VersionTLS13}
		own, err := peer.SelfSigned()
		if err != nil {
			return nil, err
		}
		c.TLS.Certificates = []tls.Certificate{own}
	}
	at := netip.MustParseAddr("127.0.0.1")
	for {
		switch kind {
		case "soft":
			c.Transport = registration.Soft{Addr: at.String()}
		case "tcp":
			c.Transport = registration.TCP{Addr: at.String()}
		case "udp":
			c.Transport = quicudp.UDP{Addr: at.String()}
		}
		r, err := registration.Open(ctx, c)
		// Each process has a soft device of its own.
		if kind != "soft" || !errors.Is(err, syscall.EADDRINUSE) || at.As4()[3] == 16 {
			return r, err
		}
		at = at.Next()
	}
}

// newRegistration is the carrier of a registration with one connection, and
// with more for streams of more.
func newRegistration(ctx context.Context, name string, to netip.AddrPort) (*carrier, error) {
	r, err := openRegistration(ctx, name)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context) (*registration.Conn, error) { return r.Dial(ctx, to.String()) }
	first, err := dial(ctx)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &carrier{
		open: func(ctx context.Context) (stream, error) { return first.OpenStreamSync(ctx) },
		more: func(ctx context.Context) (stream, error) {
			c, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return c.OpenStreamSync(ctx)
		},
		end: func() { _ = r.Close() },
	}, nil
}

// serveRegistration is serveStreams for a registration.
func serveRegistration(ctx context.Context, name string, announce func(netip.AddrPort) error) error {
	r, err := openRegistration(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	l, err := r.Listen(ctx, 0)
	if err != nil {
		return err
	}
	if err := announce(l.Addr()); err != nil {
		return err
	}
	for {
		c, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		go serveAll(ctx, c.AcceptStream)
	}
}

// memory returns the bytes of this process that a connection of a carrier takes
// with one stream: the growth of the resident memory for n of them.
func memory(ctx context.Context, name, device string, n int, other partner) (bytes float64, err error) {
	c, stop, err := reach(ctx, name, device, other)
	if err != nil {
		return 0, err
	}
	defer stop()
	use := func() error {
		s, err := c.more(ctx)
		if err == nil {
			_, err = give(s, order{}, nil, nil)
		}
		return err
	}
	if err := use(); err != nil { // memory that is made at the first use
		return 0, err
	}
	before, err := resident()
	for i := 0; i < n && err == nil; i++ {
		err = use()
	}
	if err != nil {
		return 0, err
	}
	after, err := resident()
	return (after - before) / float64(n), err
}

// resident is the process's resident memory, in bytes.
func resident() (float64, error) {
	debug.FreeOSMemory()
	debug.FreeOSMemory() // of finalizers and pools
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	var size, pages float64
	_, err = fmt.Sscan(string(text), &size, &pages)
	return pages * float64(os.Getpagesize()), err
}
