package qmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// server echoes the streams and datagrams of the connections that it accepts.
type server struct {
	link link
	peer.Reception[Connection, Total]
}

// run serves until the command's context ends.
func (s *server) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if err := s.Seats.Check(); err != nil {
		return err
	}
	done, err := s.link.prepare(cmd, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	l, err := s.link.open.Listen(ctx)
	if err != nil {
		return err
	}
	var sessions sync.WaitGroup
	s.Refuse, s.Add = stream.Reset, (*Total).add
	s.Serve = func(c net.Conn) {
		sessions.Go(func() { s.serve(ctx, c) })
	}
	return s.Run(cmd, l, sessions.Wait)
}

// serve has a client until its connection ends, and tells how.
func (s *server) serve(ctx context.Context, c net.Conn) {
	began := time.Now()
	r := &Connection{Client: c.RemoteAddr().String(), End: "closed"}
	q, err := s.link.begin(ctx, c, &qmux.Config{EnableDatagrams: true}, true)
	if err == nil {
		err = echo(ctx, q.Conn, r)
		q.wait()
	}
	var closed *qmux.ApplicationError
	switch {
	case err == nil || ctx.Err() != nil: // it was ended with the server
		err = nil
	case errors.As(err, &closed) && closed.Remote:
		r.Code, r.Reason, err = uint64(closed.ErrorCode), closed.ErrorMessage, nil
	default:
		r.End, r.Error = "failed", cli.OneLine(err)
		err = fmt.Errorf("client %s: %w", r.Client, err)
	}
	r.Seconds = time.Since(began).Seconds()
	s.Ended(c.RemoteAddr(), r, err)
}

// echo sends back a connection's bytes until it has ended.
func echo(ctx context.Context, q *qmux.Conn, r *Connection) error {
	stop := context.AfterFunc(ctx, func() { q.CloseWithError(0, "the server ends") })
	defer stop()
	var n struct{ streams, unis, datagrams, in, out atomic.Int64 }
	var all sync.WaitGroup
	all.Go(func() {
		for {
			s, err := q.AcceptStream(context.Background())
			if err != nil {
				return
			}
			n.streams.Add(1)
			all.Go(func() { echoStream(s, &n.in, &n.out) })
		}
	})
	all.Go(func() {
		for {
			s, err := q.AcceptUniStream(context.Background())
			if err != nil {
				return
			}
			n.unis.Add(1)
			all.Go(func() { _, _ = io.Copy(peer.Meter{Writer: io.Discard, N: &n.in}, s) })
		}
	})
	all.Go(func() {
		for {
			p, err := q.ReceiveDatagram(context.Background())
			if err == nil {
				err = q.SendDatagram(p)
			}
			switch {
			case err == nil:
				n.datagrams.Add(1)
			case q.Context().Err() != nil:
				return
			}
		}
	})
	all.Wait()
	r.Streams, r.UniStreams, r.Datagrams = n.streams.Load(), n.unis.Load(), n.datagrams.Load()
	r.Received, r.Sent = n.in.Load(), n.out.Load()
	return ending(context.Cause(q.Context()))
}

// echoStream sends a stream back; a stream that breaks is given up in both
// directions.
func echoStream(s *qmux.Stream, in, out *atomic.Int64) {
	_, err := io.Copy(peer.Meter{Writer: s, N: out}, io.TeeReader(s, peer.Meter{Writer: io.Discard, N: in}))
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		s.CancelRead(1)
		s.CancelWrite(1)
	}
}
