package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// perfClient is the side that asks.
type perfClient struct {
	ctl    *control
	side   *perf.Side
	report perfReport
	// gate returns when the run may begin.
	gate func() error
	bar  *progress
}

// runPerf measures against the server at addr.
func runPerf(ctx context.Context, addr string, o *perfOptions, stderr io.Writer) (*perfReport, error) {
	dialer := net.Dialer{Timeout: peerSilence}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("reach the server: %w (is 'rdmashim perf server' running there?)", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var config uapi.OpenConfig
	if o.gid >= 0 {
		config.GIDIndex = &o.gid
	}
	var rdma *uapi.Context
	if name := o.Named(); name != "" {
		rdma, err = open(name, stderr, config)
	} else {
		rdma, err = openRoute(conn.LocalAddr(), o.Options(), stderr, config)
	}
	if err != nil {
		return nil, err
	}
	defer rdma.Close()
	c := &perfClient{ctl: newControl(conn), gate: o.passGate}
	c.report.Config, c.report.Seed, c.report.ClientPID = o.config, o.Seed, os.Getpid()
	if c.report.ClientDevice, err = describe(rdma); err != nil {
		return nil, err
	}
	// The server waits for this, and not for thousands of queue pairs, which both
	// sides then make at the same time.
	if err := c.ctl.send(perfHello{Perf: perfVersion, Config: o.config}); err != nil {
		return nil, err
	}
	if c.side, err = perf.NewSide(rdma, o.config, true); err != nil {
		return nil, err
	}
	err = c.run(ctx, stderr)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return &c.report, errors.Join(err, c.side.Close())
}

func (c *perfClient) run(ctx context.Context, stderr io.Writer) error {
	var w welcome
	limit := perfConnect(c.side.Config)
	if err := c.ctl.receive(&w, limit); err != nil {
		return fmt.Errorf("wait for the server's welcome: %w", err)
	}
	if w.Error != "" {
		return fmt.Errorf("the server refused: %s", w.Error)
	}
	c.report.ServerPID, c.report.ServerDevice = w.PID, w.Device
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := c.side.Connect(limited, c.ctl.conn); err != nil {
		return fmt.Errorf("connect to the server: %w", gone(err))
	}
	c.bar = newShare(stderr, c.report.name())
	defer c.bar.Done()
	for _, size := range c.side.Config.Sizes {
		r, err := c.measure(ctx, size)
		if err != nil {
			return fmt.Errorf("%s of %d bytes: %w", opNames[c.side.Config.Op], size, err)
		}
		c.report.Results = append(c.report.Results, r)
		if r.Unfinished > 0 {
			break // messages under way would come into the next run
		}
	}
	if err := c.ctl.send(perfGo{}); err != nil {
		return err
	}
	// The server process may be told to end when it has answered.
	return c.ctl.receive(&perfReady{}, peerSilence)
}

// measure is one run.
func (c *perfClient) measure(ctx context.Context, size int) (r perf.Result, err error) {
	if err := c.side.Prepare(size); err != nil {
		return r, err
	}
	if err := c.ctl.send(perfGo{Size: size}); err != nil {
		return r, err
	}
	var ready perfReady
	if err := c.ctl.receive(&ready, perfConnect(c.side.Config)); err != nil {
		return r, err
	}
	if ready.Error != "" {
		return r, fmt.Errorf("the server is not ready: %s", ready.Error)
	}
	if err := c.gate(); err != nil {
		return r, err
	}
	defer c.show(size)()
	var out perfOutcome
	began := time.Now()
	running, came := watch(ctx, c.ctl, &out)
	if c.side.Config.Latency {
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
	case errors.Is(err, errRunOver):
		return r, fmt.Errorf("the server gave up: %s", out.Error)
	case err != nil:
		return r, cause(running, err)
	case r.Iterations == 0:
		return r, errors.New("nothing completes on this path")
	}
	if err := c.ctl.send(perfDone{Total: r.Total, Unchecked: r.Unchecked}); err != nil {
		return r, err
	}
	if d := c.side.Config.Duration; d > 0 {
		c.ctl.expect(peerSilence + perf.Longest(d) - time.Since(began))
	}
	// What the server still sends takes receives here.
	if c.side.Config.Bidirectional {
		if err := c.side.Serve(running); err != nil {
			return r, cause(running, err)
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
	r.Checked = c.side.Config.Check
	return r, c.side.Verify(out.Total)
}

// showEvery is how often the progress of a run is shown: seldom enough to take
// nothing from it.
const showEvery = 200 * time.Millisecond

// show shows how far a run is until it is stopped.
func (c *perfClient) show(size int) (stop func()) {
	if !c.bar.Shown() {
		return func() {}
	}
	sizes, all := float64(len(c.side.Config.Sizes)), float64(c.side.Config.Messages())
	before := float64(len(c.report.Results))
	c.bar.Describe(fmt.Sprintf("%s of %d bytes", c.report.name(), size))
	c.side.Done = new(atomic.Int64)
	began, quit, ended := time.Now(), make(chan struct{}), make(chan struct{})
	show := func() {
		share := float64(c.side.Done.Load()) / all
		if d := c.side.Config.Duration; d > 0 {
			share = time.Since(began).Seconds() / d.Seconds()
		}
		c.bar.Set((before + min(share, 1)) / sizes)
	}
	go func() {
		defer close(ended)
		tick := time.NewTicker(showEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
		c.bar.Set((before + 1) / sizes)
	}
}
