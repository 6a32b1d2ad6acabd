package samplequic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// client runs the exchange over all its registrations.
type client struct {
	on, from string
	exchange exchange
	timeout  time.Duration
	asJSON   bool
}

func (c *client) run(cmd *cobra.Command, addr string) error {
	e := &c.exchange
	if e.streams < 0 || e.size < 0 || e.datagrams < 0 || c.timeout <= 0 || e.streams > 1<<16 || e.datagrams > 1<<20 {
		return cli.Usagef("--streams %d, --size %d, --datagrams %d, --timeout %v: at least 0, at most 65536 streams and 1048576 datagrams, and some time",
			e.streams, e.size, e.datagrams, c.timeout)
	}
	list, err := parse(c.on)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), c.timeout, fmt.Errorf("not done within --timeout %v", c.timeout))
	defer cancel()
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return cli.Usagef("%s: %w", addr, err)
	}
	hosts, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return err
	}
	host := hosts[0].Unmap()
	addr = net.JoinHostPort(host.String(), port)

	reports, errs := make([]*Transport, len(list)), make([]error, len(list))
	var all sync.WaitGroup
	for i, t := range list {
		all.Go(func() {
			r, err := t.openToward(ctx, host, c.from, clientTLS())
			if err != nil {
				errs[i] = err
				return
			}
			reports[i], errs[i] = e.over(ctx, r, t, addr)
			errs[i] = errors.Join(errs[i], r.Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	report := Report{Server: addr, Streams: e.streams, Size: e.size, Datagrams: e.datagrams, Transports: reports}
	return report.print(cmd.OutOrStdout(), c.asJSON)
}
