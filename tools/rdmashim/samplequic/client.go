package samplequic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/echo"
)

// client runs the exchange over all its registrations.
type client struct {
	on, from string
	exchange echo.Exchange
	timeout  time.Duration
	asJSON   bool
}

func (c *client) run(cmd *cobra.Command, addr string) error {
	e := &c.exchange
	if c.timeout <= 0 {
		return cli.Usagef("--timeout %v: it needs some time", c.timeout)
	}
	if err := e.Prepare(nil); err != nil {
		return err
	}
	list, err := parse(c.on)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), c.timeout, fmt.Errorf("not done within --timeout %v", c.timeout))
	defer cancel()
	addr, here, err := echo.Toward(ctx, addr)
	if err != nil {
		return err
	}
	from := cmp.Or(c.from, here.Addr().String())

	reports, errs := make([]*Transport, len(list)), make([]error, len(list))
	var all sync.WaitGroup
	for i, t := range list {
		all.Go(func() {
			r, err := t.open(ctx, from, clientTLS())
			if err != nil {
				errs[i] = err
				return
			}
			reports[i], errs[i] = over(ctx, e, r, t, addr)
			errs[i] = errors.Join(errs[i], r.Close())
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	report := Report{Server: addr, Streams: e.Streams, Size: e.Bytes, Datagrams: e.Datagrams, Transports: reports}
	return report.print(cmd.OutOrStdout(), c.asJSON)
}
