package quicudp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"

	"github.com/quic-go/quic-go"

	"github.com/rdmashim/rdmashim/uapi/registration"
	"github.com/rdmashim/rdmashim/uapi/registration/internal/address"
)

// UDP is QUIC over UDP from and to an address of this machine.
type UDP struct {
	Addr string // an IP address
}

var _ registration.Transport = UDP{}

// Kind is "udp".
func (UDP) Kind() string { return "udp" }

// Open binds the socket that dials leave from, which shows that the address is
// this machine's. Insecure is EINVAL: QUIC has no form without TLS.
func (u UDP) Open(_ context.Context, config *registration.Config) (registration.Datapath, error) {
	if config.TLS == nil {
		return nil, fmt.Errorf("udp: QUIC is always encrypted; set Config.TLS instead of Insecure: %w", syscall.EINVAL)
	}
	addr, err := address.Parse("udp", u.Addr)
	if err != nil {
		return nil, err
	}
	socket, err := bind(addr, 0)
	if err != nil {
		return nil, address.Explain(err)
	}
	return &datapath{
		at: addr, config: config, socket: socket, dialer: &quic.Transport{Conn: socket}, acceptors: map[*acceptor]struct{}{},
	}, nil
}

func bind(addr netip.Addr, port int) (*net.UDPConn, error) {
	return net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(port))))
}

// datapath is a UDP socket for dials, and one for each listener.
type datapath struct {
	at     netip.Addr
	config *registration.Config
	socket *net.UDPConn
	dialer *quic.Transport

	mu        sync.Mutex
	acceptors map[*acceptor]struct{} // whose sockets are open; guarded by mu
}

func (d *datapath) Addr() netip.Addr { return d.at }

// Below is empty: beneath QUIC nothing sends again.
func (d *datapath) Below() registration.Below { return registration.Below{} }

// Dial shakes hands with the server at addr.
func (d *datapath) Dial(ctx context.Context, addr string) (registration.Session, error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, err
	}
	config := d.config.TLS
	if config.ServerName == "" {
		config = config.Clone()
		if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return nil, err
		}
	}
	conn, err := d.dialer.Dial(ctx, to, config, settings(d.config))
	if err != nil {
		return nil, translate(err)
	}
	return newSession(conn), nil
}

// Close gives the sockets back: their ports are free when it returns.
func (d *datapath) Close(context.Context) error {
	d.mu.Lock()
	open := slices.Collect(maps.Keys(d.acceptors))
	d.mu.Unlock()
	err := errors.Join(d.dialer.Close(), d.socket.Close())
	for _, a := range open { // with connections that were never accepted
		_ = a.shut()
	}
	return err
}

// settings is a configuration as quic-go's, which has the same names.
func settings(config *registration.Config) *quic.Config {
	s := &config.Streams
	return &quic.Config{
		HandshakeIdleTimeout: s.HandshakeIdleTimeout, MaxIdleTimeout: s.MaxIdleTimeout, KeepAlivePeriod: s.KeepAlivePeriod,
		InitialStreamReceiveWindow: s.InitialStreamReceiveWindow, MaxStreamReceiveWindow: s.MaxStreamReceiveWindow,
		InitialConnectionReceiveWindow: s.InitialConnectionReceiveWindow, MaxConnectionReceiveWindow: s.MaxConnectionReceiveWindow,
		MaxIncomingStreams: s.MaxIncomingStreams, MaxIncomingUniStreams: s.MaxIncomingUniStreams,
		EnableDatagrams: s.EnableDatagrams, Tracer: newTrace,
	}
}
