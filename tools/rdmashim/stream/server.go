package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
)

// server joins the connections that it accepts to their targets.
type server struct {
	listen place
	to     place // none: to the client itself, as an echo
	device cli.DeviceFlags

	silence, idle, drain time.Duration
	ring                 int

	peer.Reception[Connection, Total]
	rdma devices
}

func (s *server) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	s.device.AddDevice(cmd)
	f.DurationVar(&s.silence, "silence", 10*time.Second, "reset a connection on which nothing at all has come through in that time; 0: as --idle")
	f.DurationVar(&s.idle, "idle", time.Hour, "reset a connection on which nothing has come through for so long; 0: never")
	f.DurationVar(&s.drain, "drain", 5*time.Second, "when told to end, wait so long for the connections there are")
	cli.BytesVar(f, &s.ring, "ring", "", 0, "bytes that an RDMA connection has on its way in each direction: a power of two (default: 262144)")
	s.AddFlags(cmd)
}

// run serves until the command's context ends, and the connections then, but no
// longer than drain.
func (s *server) run(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	if err := s.Seats.Check(); err != nil {
		return err
	}
	if s.silence < 0 || s.idle < 0 || s.drain < 0 {
		return cli.Usagef("--silence %v, --idle %v, --drain %v: a time is not negative", s.silence, s.idle, s.drain)
	}
	if err := (&rdmanet.Config{Ring: s.ring}).Check(); err != nil {
		return cli.Usagef("--ring: %w", err)
	}
	if s.rdma, err = openDevices(s.device.Device, &s.listen, cmd.ErrOrStderr()); err != nil {
		return err
	}
	defer s.rdma.close()
	s.rdma.config.Ring = s.ring
	l, err := s.rdma.listen(ctx, s.listen)
	if err != nil {
		return err
	}
	life, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	var joined sync.WaitGroup
	s.Refuse, s.Add = reset, (*Total).add
	s.Serve = func(client net.Conn) {
		joined.Go(func() { s.serve(life, client.(stream)) })
	}
	return s.Run(cmd, l, func() {
		late := time.AfterFunc(s.drain, func() { cut(errDrained) })
		defer late.Stop()
		joined.Wait()
	})
}

// errDrained is why a connection is reset that outlasts its server.
var errDrained = errors.New("the server was told to end, and the connection did not (--drain)")

// serve joins a client to its target until both have ended, and tells how.
func (s *server) serve(ctx context.Context, client stream) {
	began := time.Now()
	to, back, err := s.join(ctx, client)
	c := &Connection{
		Client: client.RemoteAddr().String(), There: to, Back: back,
		Seconds: time.Since(began).Seconds(), End: "closed",
	}
	switch {
	case err == nil:
	case errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE):
		c.End, c.Error, err = "reset", cli.OneLine(err), nil
	default:
		c.End, c.Error = "failed", cli.OneLine(err)
		err = fmt.Errorf("client %s: %w", c.Client, err)
	}
	s.Ended(client.RemoteAddr(), c, err)
}

// join carries both directions and returns the bytes of each.
func (s *server) join(ctx context.Context, client stream) (there, back int64, err error) {
	target := client
	if s.to.network != "" {
		if target, err = s.rdma.dial(ctx, s.to); err != nil {
			reset(client)
			return 0, 0, fmt.Errorf("the target: %w", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	broken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(broken)
		reset(client)
		reset(target)
	})
	var to, fro atomic.Int64
	moved := func() uint64 { return uint64(to.Load() + fro.Load()) }
	if s.silence > 0 {
		defer time.AfterFunc(s.silence, func() {
			if moved() == 0 {
				cancel(fmt.Errorf("nothing came for %v (--silence)", s.silence))
			}
		}).Stop()
	}
	if s.idle > 0 {
		peer.EndIdle(ctx, cancel, s.idle, moved)
	}
	var other sync.WaitGroup
	if target != client {
		other.Go(func() { carry(client, target, &fro, cancel) })
	}
	carry(target, client, &to, cancel)
	other.Wait()
	if stop() {
		_ = client.Close()
		_ = target.Close()
	} else {
		<-broken
	}
	if target == client {
		return to.Load(), to.Load(), context.Cause(ctx)
	}
	return to.Load(), fro.Load(), context.Cause(ctx)
}

// carry copies from until its data ends, which it passes on. An error ends both
// directions.
func carry(to, from stream, moved *atomic.Int64, cancel context.CancelCauseFunc) {
	if _, err := io.Copy(peer.Meter{Writer: to, N: moved}, from); err != nil {
		cancel(err)
		return
	}
	_ = to.CloseWrite() // the reader of to learns of an error
}
