package echo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// keepAlive keeps a connection of QMux on which the user does not type.
const keepAlive = 10 * time.Second

// cat joins standard input and output to one stream, with the peer at an
// address, or the first that comes to listen.
type cat struct {
	link            link
	address, listen string
}

func (c *cat) run(cmd *cobra.Command) (err error) {
	server := c.listen != ""
	if server == (c.address != "") {
		return cli.Usagef("%s needs the HOST of its peer, or --listen", cli.Words(cmd))
	}
	if c.link.over == "quic" {
		return cli.Usagef("netcat is over rdma, tcp or qmux: who closes a connection of QUIC drops what is still on its way")
	}
	c.link.qmux.KeepAlivePeriod = keepAlive
	done, err := c.link.prepare(cmd, c.address+c.listen, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	ctx := cmd.Context()
	q, s, err := c.connect(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { cancel(s) })
	defer stop()
	if err := join(q, s, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
		cancel(s)
		q.end(1, "it failed")
		return errors.Join(context.Cause(ctx), err)
	}
	q.end(0, "")
	return nil
}

// connect makes the connection, of the first client if it listens, and its
// stream.
func (c *cat) connect(ctx context.Context, stderr io.Writer) (q *Session, s Stream, err error) {
	if c.listen == "" {
		if q, err = c.link.dial(ctx); err == nil {
			s, err = q.open(ctx)
		}
		return q, s, err
	}
	at, accept, stop, err := c.link.listen(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	if err := peer.PrintListening(stderr, at); err != nil {
		return nil, nil, err
	}
	client, err := accept()
	if err != nil {
		return nil, nil, fmt.Errorf("accept a client: %w", err)
	}
	if ctx.Err() != nil {
		refuse(client, context.Cause(ctx))
		return nil, nil, context.Cause(ctx)
	}
	begin, cancel := context.WithTimeoutCause(ctx, beginTimeout, errSilent)
	defer cancel()
	if q, err = c.link.session(begin, client, true); err == nil {
		s, err = q.accept(ctx)
	}
	return q, s, err
}

// join carries both directions until both have ended, or the connection.
func join(q *Session, s Stream, in io.Reader, out io.Writer) error {
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
	ended := context.Background()
	if q.many != nil {
		ended = q.Context()
	}
	select {
	case err := <-sent:
		return ending(err)
	case <-ended.Done():
		return ending(context.Cause(ended))
	}
}
