package echo

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
	"github.com/rdmashim/rdmashim/uapi/qmux"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

const (
	// port is where the server listens.
	port = 7473
	// beginTimeout bounds TLS's handshake, and the wait for the peer's first
	// bytes.
	beginTimeout = 10 * time.Second
)

var errSilent = fmt.Errorf("the peer said nothing for %v: it may speak another protocol, or want TLS (--tls)", beginTimeout)

// link is how a command reaches its peer, as its flags say.
type link struct {
	over, on string
	devices  stream.Devices
	secure   secure

	at         stream.Place
	registered registrations // of QUIC, or of the sample
}

// overs are the words of --over, ons those of --on.
var (
	overs = []string{"rdma", "tcp", "qmux", "quic"}
	ons   = []string{"rdma", "tcp"}
)

// addFlags adds the flags of a server or a client.
func (l *link) addFlags(cmd *cobra.Command, server bool) {
	f := cmd.Flags()
	f.StringVar(&l.over, "over", "rdma", "what carries the streams: rdma or tcp, a connection each; qmux, many on one connection (--on); quic, QUIC over UDP")
	f.StringVar(&l.on, "on", "rdma", "what QMux is on: rdma or tcp")
	_ = cmd.RegisterFlagCompletionFunc("over", cobra.FixedCompletions(overs, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("on", cobra.FixedCompletions(ons, cobra.ShellCompDirectiveNoFileComp))
	l.devices.AddFlags(cmd)
	l.secure.addFlags(cmd, server)
}

// network is what connections are of.
func (l *link) network() string {
	return cmp.Or(map[string]string{"qmux": l.on, "quic": "udp"}[l.over], l.over)
}

// prepare opens devices and certificates for a server at an address, or on the
// way to it. The function returned closes them.
func (l *link) prepare(cmd *cobra.Command, address string, server bool) (done func() error, err error) {
	only := func(flag string, overs ...string) error {
		if cmd.Flags().Changed(flag) && !slices.Contains(overs, l.over) {
			return cli.Usagef("--%s is for --over %s", flag, strings.Join(overs, " or "))
		}
		return nil
	}
	switch {
	case !slices.Contains(overs, l.over):
		err = cli.Usagef("--over %q: want %s", l.over, strings.Join(overs, ", "))
	case !slices.Contains(ons, l.on):
		err = cli.Usagef("--on %q: want %s", l.on, strings.Join(ons, ", "))
	default:
		err = cmp.Or(only("on", "qmux"), only("uni", "qmux"), only("datagrams", "qmux", "quic"))
	}
	if err != nil {
		return nil, err
	}
	if err := l.secure.prepare(server, address, cmp.Or(map[string]string{"qmux": qmuxALPN}[l.over], defaultALPN)); err != nil {
		return nil, err
	}
	if l.secure.insecure {
		fmt.Fprintln(cmd.ErrOrStderr(), "rdmashim: --insecure: the server made its certificate for this run, and no client checks it")
	}
	if l.over == "quic" {
		if l.secure.config == nil {
			return nil, cli.Usagef("QUIC is always encrypted: the server wants --cert and --key, or --insecure, the client --tls, --ca or --insecure")
		}
		if !strings.Contains(address, ":") {
			address = "127.0.0.1:" + address
		}
		return l.register(cmd.Context(), []transport{quic}, address, server)
	}
	if err := l.at.Set(l.network() + ":" + address); err != nil {
		return nil, cli.Usagef("%q: %w", address, err)
	}
	listen := new(stream.Place)
	if server {
		listen = &l.at
	}
	if err := l.devices.Open(listen, cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	return l.devices.Close, nil
}

// listen listens for clients.
func (l *link) listen(ctx context.Context) (at string, listeners []peer.Listener, err error) {
	if l.registered != nil {
		return l.registered.listen(ctx, l.at.Address)
	}
	b, err := l.devices.Listen(ctx, l.at)
	if err != nil {
		return "", nil, err
	}
	return b.Addr().String(), []peer.Listener{peer.NetListener(b)}, nil
}

// refuse ends a connection that listen's accept gave.
func refuse(c peer.Remote, why error) {
	if q, ok := c.(*registration.Conn); ok {
		_ = q.CloseWithError(1, cli.OneLine(why))
		return
	}
	stream.Reset(c.(net.Conn))
}

// dial is the session with the server.
func (l *link) dial(ctx context.Context) (*Session, error) {
	connect := func(ctx context.Context) (*Session, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, beginTimeout, errSilent)
		defer cancel()
		var c peer.Remote
		var err error
		if l.registered != nil {
			c, err = l.registered[0].Dial(ctx, l.at.Address)
		} else {
			c, err = l.devices.Dial(ctx, l.at)
		}
		if err != nil {
			return nil, fmt.Errorf("%w (is 'rdmashim echo server' running there?)", err)
		}
		return l.session(ctx, c, false)
	}
	if l.over == "qmux" || l.over == "quic" {
		return connect(ctx)
	}
	return &Session{open: func(ctx context.Context) (Stream, error) {
		s, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		return s.plain, nil
	}}, nil
}

// session makes a session of a connection, which it owns. Of QMux it returns
// when the peer has begun to speak it.
func (l *link) session(ctx context.Context, remote peer.Remote, server bool) (*Session, error) {
	if q, ok := remote.(*registration.Conn); ok {
		return newSession(q), nil
	}
	raw := remote.(net.Conn)
	c, err := l.secure.handshake(ctx, raw, server)
	if err != nil {
		raw.Close() // behind TLS's alert, if there is one
		return nil, err
	}
	if l.over != "qmux" {
		s := &byteStream{Conn: c, raw: raw}
		return &Session{plain: s}, nil
	}
	o := newOpening(c)
	side := qmux.Client
	if server {
		side = qmux.Server
	}
	q, err := side(o, &qmux.Config{EnableDatagrams: true})
	if err != nil {
		return nil, err
	}
	if err := o.await(ctx, q.Context()); err != nil {
		stream.Reset(raw)
		return nil, err
	}
	s := newSession(q)
	s.opening, s.qmux = o, q
	return s, nil
}
