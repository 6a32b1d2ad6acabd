package samplequic

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
	"github.com/rdmashim/rdmashim/uapi/registration"
)

// server echoes on all its registrations.
type server struct {
	on, listen string
	once       bool
	seats      peer.Seats
	failed     peer.FailureLog
}

// run serves until the command's context ends.
func (s *server) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if err := s.seats.Check(); err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(s.listen)
	if err != nil {
		return cli.Usagef("--listen %s: it is the literal ADDR:PORT of an interface", s.listen)
	}
	list, err := parse(s.on)
	if err != nil {
		return err
	}
	own, err := peer.SelfSigned()
	if err != nil {
		return err
	}
	config := clientTLS()
	config.Certificates = []tls.Certificate{own}
	s.failed.W = cmd.ErrOrStderr()
	defer s.failed.Close()

	var serving sync.WaitGroup
	defer serving.Wait()
	for _, t := range list {
		r, err := t.open(ctx, at.Addr().String(), config)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.Close()) }()
		l, err := r.Listen(ctx, int(at.Port()))
		if err != nil {
			return err
		}
		at = netip.AddrPortFrom(at.Addr(), l.Addr().Port()) // all have the port that the first chose
		serving.Go(func() { s.accept(ctx, l) })
	}
	if err := peer.PrintListening(cmd.OutOrStdout(), at); err != nil {
		return err
	}
	if s.once {
		serving.Wait()
	} else {
		<-ctx.Done()
	}
	return nil
}

// accept echoes on a listener's connections until ctx ends.
func (s *server) accept(ctx context.Context, l *registration.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	next := func() (*registration.Conn, error) { return l.Accept(ctx) }
	refuse := func(c *registration.Conn, why error) { _ = c.CloseWithError(1, cli.OneLine(why)) }
	err := peer.Accept(ctx, next, &s.seats, &s.failed, refuse, func(c *registration.Conn) bool {
		all.Go(func() {
			defer s.seats.Give(c.RemoteAddr())
			defer context.AfterFunc(ctx, func() { _ = c.CloseWithError(0, "the server ends") })()
			echo.Echo(echo.NewSession(c), new(peer.Tally))
		})
		return !s.once
	})
	if err != nil && !errors.Is(err, net.ErrClosed) {
		s.failed.Add(err)
	}
}
