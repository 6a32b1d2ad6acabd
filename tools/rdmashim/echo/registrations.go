package echo

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
	"github.com/rdmashim/rdmashim/uapi/registration/quicudp"
)

// transport is what a registration is on, at an address of this machine.
type transport struct {
	word string // as in reports: soft, tcp, rxe0
	at   func(addr string) registration.Transport
}

// quic is QUIC over UDP.
var quic = transport{"quic", func(addr string) registration.Transport { return quicudp.UDP{Addr: addr} }}

// parseTransports reads the words of the sample's --on.
func parseTransports(on string) (list []transport, err error) {
	seen := map[string]bool{}
	for word := range strings.SplitSeq(on, ",") {
		name, options, _ := strings.Cut(word, "?")
		t := transport{word: name}
		switch {
		case name == "soft":
			t.at = func(addr string) registration.Transport { return registration.Soft{Addr: addr, Options: options} }
		case options != "" || name == "":
			return nil, cli.Usagef("--on %q: %q is no transport; options are a soft device's", on, word)
		case name == "tcp":
			t.at = func(addr string) registration.Transport { return registration.TCP{Addr: addr} }
		case name == "udp":
			t.at = quic.at
		default:
			device, err := uapi.Open(name, uapi.OpenConfig{Kinds: []uapi.Kind{uapi.KindHost}})
			if err != nil {
				return nil, err
			}
			info, err := device.QueryDevice()
			if err = errors.Join(err, device.Close()); err != nil {
				return nil, err
			}
			t.at = func(string) registration.Transport {
				return registration.Kernel{Addr: info.Address.Addr().Unmap().String()}
			}
		}
		if seen[name] {
			return nil, cli.Usagef("--on %q names %s twice", on, name)
		}
		seen[name] = true
		list = append(list, t)
	}
	return list, nil
}

// registrations are of one program, side by side.
type registrations []*registration.Registration

// register opens registrations for a server at ADDR:PORT, or on the way to
// HOST:PORT. The function returned closes them.
func (l *link) register(ctx context.Context, list []transport, address string, server bool) (done func() error, err error) {
	var local netip.AddrPort
	if server {
		if local, err = netip.ParseAddrPort(address); err != nil {
			return nil, cli.Usagef("--listen %s: it is the literal ADDR:PORT of an interface", address)
		}
	} else if address, local, err = toward(ctx, address); err != nil {
		return nil, err
	}
	l.at.Address = address
	for _, t := range list {
		r, err := registration.Open(ctx, registration.Config{
			Name: t.word, Transport: t.at(local.Addr().String()), TLS: l.secure.config, DialOnly: !server,
			Streams: qmux.Config{EnableDatagrams: true},
		})
		if err != nil {
			return nil, errors.Join(err, l.registered.close())
		}
		l.registered = append(l.registered, r)
	}
	return l.registered.close, nil
}

// toward gives the address of HOST:PORT, and that of this machine on the way.
func toward(ctx context.Context, address string) (there string, here netip.AddrPort, err error) {
	way, err := new(net.Dialer).DialContext(ctx, "udp", address)
	if err != nil {
		return "", here, err
	}
	defer way.Close()
	return way.RemoteAddr().String(), way.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

func (all registrations) close() (err error) {
	for _, r := range all {
		err = errors.Join(err, r.Close())
	}
	return err
}

// listen listens on all of them, at the port that the first one has got.
func (all registrations) listen(ctx context.Context, address string) (at string, listeners []peer.Listener, err error) {
	local := netip.MustParseAddrPort(address)
	for _, r := range all {
		l, err := r.Listen(ctx, int(local.Port()))
		if err != nil {
			return "", nil, err
		}
		local = netip.AddrPortFrom(local.Addr(), l.Addr().Port())
		accept := func() (peer.Remote, error) { return l.Accept(context.Background()) } // until it is closed
		listeners = append(listeners, peer.Listener{Accept: accept, Close: l.Close})
	}
	return local.String(), listeners, nil
}
