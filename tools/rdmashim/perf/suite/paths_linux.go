package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf/netpath"
	"github.com/rdmashim/rdmashim/uapi"
)

// path is a network that ours and TCP are compared on, the same in both
// directions.
type path struct {
	name string
	is   netpath.Path
	mtu  int // of the interfaces in bytes; 0 is Ethernet's
	// target is the ratio that is aimed at.
	target float64
}

var paths = []path{
	{name: "MTU 1500", target: 0.8},
	{name: "MTU 9000", is: netpath.Path{MTU: 9000}, mtu: 9000, target: 1},
	{name: "1 % lost", is: netpath.Path{Loss: 0.01}, target: 0.8},
	{name: "5 % lost", is: netpath.Path{Loss: 0.05}, target: 0.8},
	{name: "20 % lost", is: netpath.Path{Loss: 0.2}, target: 0.8},
	{name: "round trip 2 ms", is: netpath.Path{Delay: time.Millisecond}, target: 0.8},
	{name: "round trip 20 ms", is: netpath.Path{Delay: 10 * time.Millisecond}, target: 0.8},
	{name: "round trip 200 ms", is: netpath.Path{Delay: 100 * time.Millisecond}, target: 0.8},
	{name: "1 % lost, round trip 20 ms", is: netpath.Path{Loss: 0.01, Delay: 10 * time.Millisecond}, target: 1.5},
	{name: "25 % reordered", is: netpath.Path{Reorder: 0.25}, target: 0.8},
	{name: "5 % doubled", is: netpath.Path{Duplicate: 0.05}, target: 0.8},
	{name: "1 % corrupted", is: netpath.Path{Corrupt: 0.01}, target: 0.8},
	{name: "100 Mbit/s, queue of 64 KiB", is: netpath.Path{Rate: 100e6, Queue: 64 << 10}, target: 0.8},
}

const (
	// pathSize is the length of a message in bytes, pathFlying how many are
	// under way.
	pathSize, pathFlying = 64 << 10, 64
	// pathTrips is how many round trips a measurement lasts at least: a window
	// that grows needs some ten.
	pathTrips = 25
)

// pathTable lists the comparisons with Go's TCP on bad networks, whose both
// ends are in this process.
func (s *suite) pathTable() (table []comparison) {
	for _, p := range paths {
		d := max(s.turn, pathTrips*2*p.is.Delay)
		tcp := s.onPath("Go TCP, same path", p, func(ctx context.Context, n *network) (float64, error) { return tcpOn(ctx, n, d) })
		for _, op := range []perf.Op{perf.Write, perf.Send, perf.Read} {
			ours := s.onPath(p.name, p, func(ctx context.Context, n *network) (float64, error) { return rdmaOn(ctx, n, op, d) })
			table = append(table, comparison{fmt.Sprintf("%s 64 KiB, path with %s", opNames[op], p.name), "MB/s", ours, tcp, p.target, false})
		}
	}
	return table
}

var opNames = map[perf.Op]string{perf.Write: "WRITE", perf.Send: "SEND", perf.Read: "READ"}

// clean is the path without faults that chance decides about: connecting has no
// condition.
func (p path) clean() netpath.Path {
	return netpath.Path{MTU: p.is.MTU, Delay: p.is.Delay}
}

// seeded is the path in a round, each of which has other faults.
func (p path) seeded(round int) netpath.Path {
	is := p.is
	is.Seed = uint64(round + 1)
	return is
}

// enterPaths makes sure that this process may make networks, as far as the
// system lets it.
func enterPaths() { netpath.Enter() }

// onPath is a series of what is measured on a path.
func (s *suite) onPath(name string, p path, measure func(ctx context.Context, n *network) (float64, error)) *series {
	return &series{name: name, measure: func(ctx context.Context) (rate float64, err error) {
		n, err := netpath.New(netpath.Options{AB: p.clean(), BA: p.clean(), MTU: p.mtu})
		if errors.Is(err, syscall.EPERM) {
			return 0, &notHere{err.Error()}
		}
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, n.Close()) }()
		return measure(ctx, &network{n, p.seeded(s.round)})
	}}
}

// network is a path whose faults begin with spoil.
type network struct {
	*netpath.Net
	faults netpath.Path
}

func (n *network) spoil() { n.SetPaths(n.faults, n.faults) }

// rdmaOn keeps a queue pair between two soft devices busy for about d, and
// returns MB/s.
func rdmaOn(ctx context.Context, n *network, op perf.Op, d time.Duration) (rate float64, err error) {
	config := perf.Config{
		Op: op, Sizes: []int{pathSize}, Duration: d, QPs: 1, Depth: pathFlying, List: 1, Moderation: 1, Events: true,
	}
	var sides [2]*perf.Side
	for i, end := range []*netpath.End{n.A, n.B} {
		var device *uapi.Context
		err = end.Do(func() (err error) {
			device, err = uapi.Open("soft:" + end.Addr4.String())
			return err
		})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, device.Close()) }()
		if sides[i], err = perf.NewSide(device, config, i == 0); err != nil {
			return 0, err
		}
		defer func(s *perf.Side) { err = errors.Join(err, s.Close()) }(sides[i])
	}
	client, server := sides[0], sides[1]
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	connected := make(chan error, 1)
	go func() { connected <- server.Connect(ctx, there) }()
	if err = errors.Join(client.Connect(ctx, here), <-connected, client.Prepare(pathSize), server.Prepare(pathSize)); err != nil {
		return 0, err
	}
	n.spoil()
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	r, err := client.Bandwidth(ctx)
	cancel()
	return r.Goodput / megabyte, errors.Join(err, <-served)
}

// tcpOn writes to a TCP connection for d, and returns the MB/s that were read
// of it.
func tcpOn(ctx context.Context, n *network, d time.Duration) (rate float64, err error) {
	var l net.Listener
	var from net.Conn
	err = n.B.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(n.B.Addr4.String(), "0"))
		return err
	})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	err = n.A.Do(func() (err error) {
		from, err = net.Dial("tcp", l.Addr().String())
		return err
	})
	if err != nil {
		return 0, err
	}
	defer from.Close()
	to, err := l.Accept()
	if err != nil {
		return 0, err
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
	n.spoil()
	began := time.Now()
	wrote := make(chan error, 1)
	go func() {
		message := make([]byte, pathSize)
		for {
			if _, err := from.Write(message); err != nil {
				wrote <- err
				return
			}
		}
	}()
	_ = to.SetReadDeadline(began.Add(d))
	bytes := 0
	into := make([]byte, pathSize)
	for err == nil {
		var k int
		k, err = to.Read(into)
		bytes += k
	}
	took := time.Since(began)
	_ = from.Close()
	<-wrote
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		return 0, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return float64(bytes) / took.Seconds() / megabyte, nil
}
