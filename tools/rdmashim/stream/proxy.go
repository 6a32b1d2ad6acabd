package stream

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// proxy joins the connections that it accepts to their targets.
type proxy struct {
	listen, to Place
	devices    Devices
	peer.Reception
}

// ProxyCommand is 'rdmashim proxy'.
func ProxyCommand() *cobra.Command {
	p := &proxy{}
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Carry any program's TCP connections through RDMA",
		Long: `Accept connections at --listen and join each to one of its own to --to, until
ended. Two proxies carry TCP through RDMA: one beside the client, from tcp: to
rdma:, and one beside the server, from rdma: to tcp:. Prints 'listening
ADDR:PORT'; port 0 takes a free one.

A place is tcp:HOST:PORT, rdma:HOST:PORT or unix:PATH; a PORT alone is on
127.0.0.1, or, to listen by rdma, on the address of the device that is named; an
empty HOST is every address (tcp) or device (rdma). Anybody who reaches --listen
reaches --to. Nothing is encrypted; TLS passes through.

The end of data is passed on in each direction by itself, a reset as a reset. A
client whose target cannot be reached is reset.`,
		Example: `  rdmashim proxy --listen rdma:192.0.2.7:5433 --to tcp:5432
  rdmashim proxy --listen tcp:5432 --to rdma:192.0.2.7:5433
  rdmashim proxy --listen unix:/tmp/redis --to rdma:192.0.2.7:6380 --json`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.listen.Network == "" || p.to.Network == "" {
				return cli.Usagef("say from where and to where: --listen tcp:HOST:PORT --to rdma:HOST:PORT")
			}
			return p.run(cmd)
		},
	}
	f := cmd.Flags()
	f.Var(&p.listen, "listen", "where connections come from")
	f.Var(&p.to, "to", "where they go")
	p.devices.AddFlags(cmd)
	p.AddFlags(cmd)
	return cmd
}

// run serves until the command's context ends, and the connections then.
func (p *proxy) run(cmd *cobra.Command) error {
	if err := p.Check(); err != nil {
		return err
	}
	if err := p.devices.Open(&p.listen, cmd.ErrOrStderr()); err != nil {
		return err
	}
	defer p.devices.Close()
	l, err := p.devices.Listen(cmd.Context(), p.listen)
	if err != nil {
		return err
	}
	p.Refuse = func(c peer.Remote, _ error) { Reset(c.(Stream)) }
	p.Serve = p.join
	return p.Run(cmd, l.Addr().String(), peer.NetListener(l))
}

// join joins a client to its target until both have ended.
func (p *proxy) join(ctx context.Context, from peer.Remote, n *peer.Tally) error {
	client := from.(Stream)
	target, err := p.devices.Dial(ctx, p.to)
	if err != nil {
		Reset(client)
		return fmt.Errorf("the target: %w", err)
	}
	ctx, cancel := p.Watch(ctx, n)
	defer cancel(nil)
	broken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(broken)
		Reset(client)
		Reset(target)
	})
	var other sync.WaitGroup
	other.Go(func() { carry(client, target, &n.Back, cancel) })
	carry(target, client, &n.There, cancel)
	other.Wait()
	if stop() {
		_ = client.Close()
		_ = target.Close()
	} else {
		<-broken
	}
	return context.Cause(ctx)
}

// carry copies from until its data ends, which it passes on. An error ends both
// directions.
func carry(to, from Stream, moved *atomic.Int64, cancel context.CancelCauseFunc) {
	if _, err := io.Copy(peer.Meter{Writer: to, N: moved}, from); err != nil {
		cancel(err)
		return
	}
	_ = to.CloseWrite() // the reader of to learns of an error
}
