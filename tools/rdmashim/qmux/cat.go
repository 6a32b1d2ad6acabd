package qmux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/stream"
	"github.com/rdmashim/rdmashim/uapi/qmux"
)

// keepAlive keeps a connection on which the user does not type.
const keepAlive = 10 * time.Second

// cat joins standard input and output to one stream.
type cat struct {
	link   link
	listen bool
}

func (c *cat) run(cmd *cobra.Command) (err error) {
	done, err := c.link.prepare(cmd, c.listen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx := cmd.Context()
	q, err := c.connect(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { q.CloseWithError(1, "interrupted") })
	defer stop()
	open := q.OpenStreamSync
	if c.listen {
		open = q.AcceptStream
	}
	s, err := open(context.Background())
	if err == nil {
		err = join(q.Conn, s, cmd.InOrStdin(), cmd.OutOrStdout())
	}
	if err != nil {
		q.end(1, "it failed")
		return err
	}
	q.end(0, "")
	return nil
}

// connect makes the connection, of the first client if it listens.
func (c *cat) connect(ctx context.Context, stderr io.Writer) (*session, error) {
	config := &qmux.Config{KeepAlivePeriod: keepAlive}
	if !c.listen {
		return c.link.dial(ctx, config)
	}
	l, err := c.link.open.Listen(ctx)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if err := peer.SayListening(stderr, l.Addr()); err != nil {
		return nil, err
	}
	client, err := l.Accept()
	if err != nil {
		return nil, fmt.Errorf("accept a client: %w", err)
	}
	if ctx.Err() != nil {
		stream.Reset(client)
		return nil, context.Cause(ctx)
	}
	return c.link.begin(ctx, client, config, true)
}

// join carries both directions until both have ended, or the connection.
func join(q *qmux.Conn, s *qmux.Stream, in io.Reader, out io.Writer) error {
	sent := make(chan error, 1)
	go func() { // until in has something; the process does not wait for it
		_, err := io.Copy(s, in)
		if err == nil {
			err = s.Close()
		}
		sent <- err
	}()
	if _, err := io.Copy(out, s); err != nil {
		return err
	}
	select {
	case err := <-sent:
		return ending(err)
	case <-q.Context().Done():
		return ending(context.Cause(q.Context()))
	}
}
