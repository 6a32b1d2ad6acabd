package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// Run measures by a command line of 'rdmashim perf', such as "write bw -s 64",
// with a server of its own; no name of the server's device means that of the
// client's.
func Run(ctx context.Context, words, server, client string, stderr io.Writer) (Result, error) {
	f := strings.Fields(words)
	o := &options{config: Config{Op: Op(f[0]), Latency: f[1] == "lat"}}
	cmd := &cobra.Command{}
	o.add(cmd)
	err := cmd.ParseFlags(f[2:])
	if err == nil {
		err = o.complete(cmd, nil)
	}
	if err != nil {
		return Result{}, err
	}
	o.serverDevice, o.Device = server, client
	r, err := o.measure(ctx, stderr)
	if err != nil {
		return Result{}, err
	}
	return r.Results[0], nil
}

// client is the side that asks.
type client struct {
	*peer.Client
	side   *Side
	report Report
	bar    *cli.Progress
}

// ask measures against the server at addr, with start as of peer.Dial.
func (o *options) ask(ctx context.Context, addr, start string, stderr io.Writer) (*Report, error) {
	p, err := peer.Dial(ctx, addr, start, &o.DeviceFlags, stderr, gidConfig(o.gid))
	if err != nil {
		return nil, err
	}
	defer p.Close()
	stop := context.AfterFunc(ctx, func() { p.Conn.Close() })
	defer stop()
	c := &client{Client: p, report: Report{Config: o.config, Seed: o.Seed, ClientPID: os.Getpid(), ClientDevice: p.Own}}
	c.report.Test = c.report.name()
	// The server waits for the hello, and not for thousands of queue pairs,
	// which both sides then make at the same time.
	err = p.Greet(job, o.config, connectLimit(o.config), func() (err error) {
		c.side, err = NewSide(p.Device, o.config, true)
		return err
	})
	if err == nil {
		c.bar = cli.NewProgress(stderr, c.report.name(), int64(len(c.side.Config.Sizes)))
		err = c.run(ctx)
		c.bar.Done()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if c.side != nil {
		err = errors.Join(err, c.side.Close())
	}
	return &c.report, err
}

// gidConfig asks for an index in the device's table of addresses; -1 lets it
// choose.
func gidConfig(index int) (c uapi.OpenConfig) {
	if index >= 0 {
		c.GIDIndex = &index
	}
	return c
}

func (c *client) run(ctx context.Context) error {
	c.report.ServerPID, c.report.ServerDevice = c.Server.PID, c.Server.Device
	if err := connect(ctx, c.side, c.Conn); err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	c.report.Way = peer.Way(c.Device, c.side.qps[0])
	for _, size := range c.side.Config.Sizes {
		c.bar.Describe(fmt.Sprintf("%s of %d bytes", c.report.name(), size))
		r, err := c.measure(ctx, size)
		if err != nil {
			return fmt.Errorf("%s of %d bytes: %w", opNames[c.side.Config.Op], size, err)
		}
		c.report.Results = append(c.report.Results, r)
		c.bar.Add(1)
		if r.Unfinished > 0 {
			break // messages under way would come into the next run
		}
	}
	if err := c.Send(start{}); err != nil {
		return err
	}
	// The server process may be told to end when it has answered.
	return c.Receive(&ready{}, peer.Silence)
}

// measure is one run.
func (c *client) measure(ctx context.Context, size int) (r Result, err error) {
	config := &c.side.Config
	if err := c.side.Prepare(size); err != nil {
		return r, err
	}
	if err := c.Send(start{Size: size}); err != nil {
		return r, err
	}
	var answer ready
	if err := c.Receive(&answer, connectLimit(*config)); err != nil {
		return r, err
	}
	if answer.Error != "" {
		return r, fmt.Errorf("the server is not ready: %s", answer.Error)
	}
	var out outcome
	began := time.Now()
	running, came := c.Watch(ctx, &out, peer.ErrCame)
	if config.Latency {
		r, err = c.side.Latency(running)
	} else {
		r, err = c.side.Bandwidth(running)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w (%d messages had completed in %.1f s)", err, r.Iterations, r.Seconds)
		}
	}()
	switch {
	case errors.Is(err, peer.ErrCame):
		return r, fmt.Errorf("the server gave up: %s", out.Error)
	case err != nil:
		err = peer.Cause(running, err)
		if gone := c.EndOf(came, err); gone != nil {
			err = gone
		}
		return r, err
	case r.Iterations == 0:
		return r, errors.New("nothing completes on this path")
	}
	if err := c.Send(done{Total: r.Total, Unchecked: r.Unchecked}); err != nil {
		return r, err
	}
	if d := config.Duration; d > 0 {
		c.Expect(peer.Silence + longestRun(d) - time.Since(began))
	}
	// The server's last messages take receives here.
	if config.Bidirectional {
		if err := c.side.Serve(running); err != nil {
			return r, peer.Cause(running, err)
		}
	}
	if err := came(); err != nil {
		return r, err
	}
	if out.Error != "" {
		return r, errors.New(out.Error)
	}
	r.Add(out.Result)
	r.ServerCPU = out.Result.ServerCPU
	if r.Unchecked || r.Unfinished > 0 {
		return r, nil
	}
	r.Checked = config.Check
	return r, c.side.Verify(out.Total)
}
