package echo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// server echoes what comes on the connections that it accepts.
type server struct {
	link    link
	address string
	peer.Reception
}

// run serves until the command's context ends, on what open opens.
func (s *server) run(cmd *cobra.Command, open func() (done func() error, err error)) (err error) {
	if err := s.Check(); err != nil {
		return err
	}
	done, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	at, listeners, err := s.link.listen(cmd.Context())
	if err != nil {
		return err
	}
	s.Refuse, s.Serve = refuse, s.serve
	return s.Run(cmd, at, listeners...)
}

// serve echoes on a connection until it has ended.
func (s *server) serve(ctx context.Context, c peer.Remote, n *peer.Tally) error {
	ctx, end := s.Watch(ctx, n)
	defer end(nil)
	q, err := s.link.session(ctx, c, true)
	if err != nil {
		return err
	}
	if q.plain != nil {
		stop := context.AfterFunc(ctx, func() { cancel(q.plain) })
		err = echoStream(q.plain, n)
		stop()
	} else {
		n.Begun.Add(1)
		stop := context.AfterFunc(ctx, func() { _ = q.CloseWithError(1, cli.OneLine(context.Cause(ctx))) })
		echo(q, n)
		stop()
		q.opening.wait()
		err = ending(context.Cause(q.Context()))
	}
	var closed *qmux.ApplicationError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &closed) && closed.Remote:
		n.Code, n.Reason = uint64(closed.ErrorCode), closed.ErrorMessage
		return nil
	}
	return err
}

// echo sends back the streams and datagrams of a session of many streams until
// it has ended.
func echo(q *Session, n *peer.Tally) {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			s, err := q.accept(context.Background())
			if err != nil {
				return
			}
			n.Streams.Add(1)
			all.Go(func() { _ = echoStream(s, n) })
		}
	})
	all.Go(func() {
		for {
			s, err := q.acceptUni(context.Background())
			if err != nil {
				return
			}
			n.UniStreams.Add(1)
			all.Go(func() { _, _ = io.Copy(peer.Meter{Writer: io.Discard, N: &n.There}, s) })
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
				n.Datagrams.Add(1)
			case q.Context().Err() != nil:
				return
			}
		}
	})
	all.Wait()
}

// echoStream sends a stream back; one that breaks is given up in both
// directions. Until its first bytes come it has no buffer of 32 KiB.
func echoStream(s Stream, n *peer.Tally) error {
	first := make([]byte, 64)
	got, err := s.Read(first)
	if err == nil || err == io.EOF {
		all := io.MultiReader(bytes.NewReader(first[:got]), s)
		_, err = io.Copy(peer.Meter{Writer: s, N: &n.Back}, io.TeeReader(all, peer.Meter{Writer: io.Discard, N: &n.There}))
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		cancel(s)
	} else {
		leave(s)
	}
	return err
}
