package qmux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

const (
	// defaultPort is where RDMA goes when no place is named.
	defaultPort = "7474"
	// beginTimeout bounds TLS's handshake, and the wait for the peer's first
	// bytes.
	beginTimeout = 10 * time.Second
)

// link is how a command reaches its peer, as its flags say.
type link struct {
	tcp, rdma string
	device    cli.DeviceFlags
	secure    secure
	record    string

	open     *stream.Link
	recorder *recorder
}

// addFlags adds the flags of the roles that a command may have.
func (l *link) addFlags(cmd *cobra.Command, server, client bool) {
	f := cmd.Flags()
	f.StringVar(&l.rdma, "rdma", "", "RDMA: HOST:PORT, or PORT on 127.0.0.1, of a server on its --device (the default, with port "+defaultPort+")")
	f.StringVar(&l.tcp, "tcp", "", "TCP: HOST:PORT, or PORT on 127.0.0.1")
	l.device.AddDevice(cmd)
	l.secure.addFlags(cmd, server, client)
	f.StringVar(&l.record, "record", "", "write what both sides say into this capture file, as TCP and without TLS")
}

// prepare opens the device, the certificates and the record. The function
// returned closes them.
func (l *link) prepare(cmd *cobra.Command, server bool) (done func() error, err error) {
	if l.tcp != "" && l.rdma != "" {
		return nil, cli.Usagef("--tcp and --rdma name two places: choose one")
	}
	if err := l.secure.prepare(server, cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	network, address := "rdma", cmp.Or(l.rdma, defaultPort)
	if l.tcp != "" {
		network, address = "tcp", l.tcp
	}
	if l.record != "" {
		if l.recorder, err = newRecorder(l.record); err != nil {
			return nil, err
		}
	}
	if l.open, err = stream.OpenLink(network, address, l.device.Device, server, cmd.ErrOrStderr()); err != nil {
		return nil, errors.Join(err, l.recorder.close())
	}
	return func() error {
		l.open.Close()
		return l.recorder.close()
	}, nil
}

// dial connects to a server.
func (l *link) dial(ctx context.Context, config *qmux.Config) (*session, error) {
	c, err := l.open.Dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w (is 'rdmashim qmux server' running there?)", err)
	}
	return l.begin(ctx, c, config, false)
}

// begin makes a connection of QMux of a byte stream, which it owns. It returns
// when the peer has begun to speak QMux.
func (l *link) begin(ctx context.Context, c net.Conn, config *qmux.Config, server bool) (*session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTimeout, fmt.Errorf("the peer said nothing for %v: it may not speak QMux, or want TLS (--tls)", beginTimeout))
	defer cancel()
	safe, err := l.secure.handshake(ctx, c, server)
	if err != nil {
		c.Close() // behind TLS's alert, if there is one
		return nil, err
	}
	t := newTap(safe, l.recorder)
	q, err := connect(t, config, server)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.sure:
	case <-q.Context().Done():
		select {
		case <-t.sure: // it spoke, and closed at once
		default:
			err = fmt.Errorf("%w, before it spoke: it may not speak QMux, or want TLS (--tls)", context.Cause(q.Context()))
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if foreign := t.foreign(); foreign != nil {
		err = foreign
	}
	if err != nil {
		stream.Reset(c)
		return nil, err
	}
	return &session{q, t}, nil
}

// session is a connection, and the byte stream beneath it.
type session struct {
	*qmux.Conn
	tap *tap
}

// end closes the connection, and waits until its byte stream is closed: the
// link's end waits for closed streams.
func (s *session) end(code qmux.ApplicationErrorCode, reason string) {
	s.CloseWithError(code, reason)
	s.wait()
}

// wait waits until the byte stream is closed, which QMux does within 3 s of the
// connection's end.
func (s *session) wait() {
	select {
	case <-s.tap.closed:
	case <-time.After(beginTimeout):
	}
}

func connect(c net.Conn, config *qmux.Config, server bool) (*qmux.Conn, error) {
	if server {
		return qmux.Server(c, config)
	}
	return qmux.Client(c, config)
}

// ending is nil for a connection that its peer's program, or this one, closed
// with code 0.
func ending(err error) error {
	var closed *qmux.ApplicationError
	if errors.As(err, &closed) && closed.ErrorCode == 0 {
		return nil
	}
	return err
}
