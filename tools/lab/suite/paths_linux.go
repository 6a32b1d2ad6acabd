package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/lab/netpath"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// path is a network that ours and TCP are compared on, the same in both
// directions.
type path struct {
	name string
	is   netpath.Path
	mtu  int // of the interfaces in bytes; 0 is Ethernet's
	// straight is a veth pair without a bridge, which can only be sound.
	straight bool
	// reads has READs measured too, whose requests go one way and data the
	// other. SENDs are as WRITEs.
	reads bool
	// target is the ratio of goodput that is aimed at, cpu that of processor
	// time.
	target, cpu float64
}

var paths = []path{
	{name: "MTU 1500", target: 0.8, reads: true},
	{name: "MTU 9000", is: netpath.Path{MTU: 9000}, mtu: 9000, target: 1, reads: true},
	{name: "1 % lost", is: netpath.Path{Loss: 0.01}, target: 0.8, reads: true},
	{name: "20 % lost", is: netpath.Path{Loss: 0.2}, target: 0.8},
	{name: "round trip 20 ms", is: netpath.Path{Delay: 10 * time.Millisecond}, target: 0.8},
	{name: "round trip 200 ms", is: netpath.Path{Delay: 100 * time.Millisecond}, target: 0.8},
	{name: "1 % lost, round trip 20 ms", is: netpath.Path{Loss: 0.01, Delay: 10 * time.Millisecond}, target: 1.5},
	{name: "25 % reordered", is: netpath.Path{Reorder: 0.25}, target: 0.8},
	{name: "5 % doubled", is: netpath.Path{Duplicate: 0.05}, target: 0.8},
	{name: "1 % corrupted", is: netpath.Path{Corrupt: 0.01}, target: 0.8},
	{name: "100 Mbit/s, queue of 64 KiB", is: slow, target: 0.8},
}

// slow is a link with a cheap switch's queue.
var slow = netpath.Path{Rate: 100e6, Queue: 64 << 10}

// veths are without the bridge, which would be measured instead.
var veths = []path{
	{name: "MTU 1500", straight: true, target: 0.9, cpu: 1.5},
	{name: "MTU 9000", straight: true, mtu: 9000, target: 1, cpu: 1.2},
}

const (
	// pathSize is the length of a message in bytes, pathFlying how many are
	// under way.
	pathSize, pathFlying = 64 << 10, 64
	// vethFlying is how many messages of 1 MiB are under way on a veth.
	vethFlying = 16
	// pathTrips is how many round trips a measurement lasts at least: a window
	// that grows needs some ten.
	pathTrips = 25
	// usualBuffer is what Linux lets any user have of a socket's buffer, in
	// bytes, unless net.core.rmem_max was raised.
	usualBuffer = 212992
	// shareTurns is how many times as long flows run that share a link: they
	// are to find their shares first.
	shareTurns = 5
	// incast is how many senders there are at once.
	incast = 16
)

// pathTable lists the comparisons with Go's TCP on bad networks, and of flows
// with each other. Both ends are in this process.
func (s *suite) pathTable() (table []comparison) {
	for _, p := range paths {
		d := max(s.turn, pathTrips*2*p.is.Delay)
		tcp := pick("Go TCP, same path", s.onPath(p, func(ctx context.Context, n *network) (figures, error) { return tcpOn(ctx, n, pathSize, d) }), rate(megabyte))
		for _, op := range []perf.Op{perf.Write, perf.Read} {
			if op == perf.Read && !p.reads {
				continue
			}
			ours := pick(p.name, s.onPath(p, func(ctx context.Context, n *network) (figures, error) {
				return rdmaOn(ctx, n, flow{op: op, size: pathSize, flying: pathFlying}, d)
			}), rate(megabyte))
			table = append(table, comparison{fmt.Sprintf("%s 64 KiB, path with %s", opNames[op], p.name), "MB/s", ours, tcp, p.target, false})
		}
	}
	for _, p := range veths {
		tcp := memo(s, s.onPath(p, func(ctx context.Context, n *network) (figures, error) { return tcpOn(ctx, n, mebibyte, s.turn) }))
		ours := memo(s, s.onPath(p, func(ctx context.Context, n *network) (figures, error) {
			return rdmaOn(ctx, n, flow{op: perf.Write, size: mebibyte, flying: vethFlying}, s.turn)
		}))
		work := "WRITE 1 MiB, veth with " + p.name
		small := work + ", buffers as any user's"
		asAny := s.onPath(p, func(ctx context.Context, n *network) (figures, error) {
			return rdmaOn(ctx, n, flow{op: perf.Write, size: mebibyte, flying: vethFlying, buffer: usualBuffer}, s.turn)
		})
		table = append(table,
			comparison{work, "MB/s", pick(work, ours, rate(megabyte)), pick("Go TCP, same veth", tcp, rate(megabyte)), p.target, false},
			comparison{work + ", processor time", "ms/GB", pick(work, ours, cost(1e3*gigabyte)), pick("Go TCP, same veth", tcp, cost(1e3*gigabyte)), p.cpu, true},
			comparison{small, "MB/s", pick(small, asAny, rate(megabyte)), pick("buffers of 4 MiB", ours, rate(megabyte)), 0.8, false})
	}
	return append(append(table, s.shareTable()...), s.directoryTable()...)
}

// shareTable lists the shares that flows get of a link.
func (s *suite) shareTable() []comparison {
	link := path{name: "100 Mbit/s, queue of 64 KiB", is: slow}
	d := shareTurns * s.turn
	whole := float64(slow.Rate) / 8
	ours := func(i int) func(context.Context, *network) (figures, error) {
		return func(ctx context.Context, n *network) (figures, error) {
			return rdmaOn(ctx, n, flow{op: perf.Write, size: pathSize, flying: pathFlying, port: 4791 + i}, d)
		}
	}
	tcp := func(ctx context.Context, n *network) (figures, error) { return tcpOn(ctx, n, pathSize, d) }
	two := memo(s, s.onPath(link, both(ours(0), ours(1))))
	beside := memo(s, s.onPath(link, both(ours(0), tcp)))
	veth := path{name: "veth", straight: true}
	one := memo(s, s.onPath(veth, func(ctx context.Context, n *network) (figures, error) { return into(ctx, n, 1, s.turn) }))
	many := memo(s, s.onPath(veth, func(ctx context.Context, n *network) (figures, error) { return into(ctx, n, incast, s.turn) }))
	used := func(f figures) float64 { return f.rate / whole }
	even := func(f figures) float64 { return fairness(f.times) }
	row := func(work string, m measurement, of func(figures) float64, target float64, atMost bool) comparison {
		return comparison{work, "", pick(work, m, of), bound, target, atMost}
	}
	return []comparison{
		row("Two WRITE flows, link of "+link.name+", used of it", two, used, 0.85, false),
		row("Two WRITE flows, link of "+link.name+", Jain's index", two, even, 0.9, false),
		row("WRITE beside a Go TCP flow, link of "+link.name+", its share", beside, func(f figures) float64 { return f.times[0] }, 0.3, false),
		{"WRITE 64 KiB of 16 senders into one receiver, veth with MTU 1500", "MB/s", pick("16 senders", many, rate(megabyte)), pick("one sender", one, rate(megabyte)), 0.9, false},
		row("WRITE 64 KiB of 16 senders into one receiver, dropped", many, func(f figures) float64 { return f.times[0] }, 0.001, true),
	}
}

var opNames = map[perf.Op]string{perf.Write: "WRITE", perf.Read: "READ"}

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

// onPath measures on a path that is made for it.
func (s *suite) onPath(p path, measure func(ctx context.Context, n *network) (figures, error)) measurement {
	return func(ctx context.Context) (f figures, err error) {
		n, err := netpath.New(netpath.Options{AB: p.clean(), BA: p.clean(), MTU: p.mtu, Straight: p.straight})
		if errors.Is(err, syscall.EPERM) {
			return f, &notHere{err.Error()}
		}
		if err != nil {
			return f, err
		}
		defer func() { err = errors.Join(err, n.Close()) }()
		w := &network{Net: n, faults: p.seeded(s.round)}
		if p.straight {
			w.spoiled.Do(func() {}) // nothing can spoil it
		}
		return measure(ctx, w)
	}
}

// network is a path whose faults begin with spoil.
type network struct {
	*netpath.Net
	faults  netpath.Path
	spoiled sync.Once
}

func (n *network) spoil() { n.spoiled.Do(func() { n.SetPaths(n.faults, n.faults) }) }

// both measures two at the same time: their rate together, and the share of
// each as times.
func both(a, b func(context.Context, *network) (figures, error)) func(context.Context, *network) (figures, error) {
	return func(ctx context.Context, n *network) (figures, error) {
		var rates [2]float64
		errs := make(chan error, len(rates))
		for i, measure := range []func(context.Context, *network) (figures, error){a, b} {
			go func() {
				f, err := measure(ctx, n)
				rates[i] = f.rate
				errs <- err
			}()
		}
		err := errors.Join(<-errs, <-errs)
		all := rates[0] + rates[1]
		return figures{rate: all, times: []float64{rates[0] / all, rates[1] / all}}, err
	}
}

// flow is the messages that a device sends to another.
type flow struct {
	op           perf.Op
	size, flying int
	port         int // of both devices; 0: the usual one
	buffer       int // of their sockets, in bytes; 0: as the device chooses
}

// start opens a device for the flow on an end of the network.
func (f flow) start(end *netpath.End) (device *uapi.Device, err error) {
	spec := "soft:" + end.Addr4.String() + "?"
	if f.port != 0 {
		spec += fmt.Sprintf("port=%d&", f.port)
	}
	if f.buffer != 0 {
		spec += fmt.Sprintf("buffer=%d&", f.buffer)
	}
	err = end.Do(func() (err error) {
		device, err = uapi.Open(spec, uapi.OpenConfig{})
		return err
	})
	return device, err
}

// run keeps a queue pair between two devices busy for about d.
func (f flow) run(ctx context.Context, n *network, from, to *uapi.Device, d time.Duration) (r perf.Result, err error) {
	s, err := join(ctx, [2]*uapi.Device{from, to}, perf.Config{
		Op: f.op, Sizes: []int{f.size}, Duration: d, QPs: 1, Depth: f.flying, List: 1, Moderation: 1, Events: true,
	})
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return r, err
	}
	n.spoil()
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- s[1].Serve(ctx) }()
	r, err = s[0].Bandwidth(ctx)
	cancel()
	return r, errors.Join(err, <-served)
}

// rdmaOn runs a flow for about d, in bytes.
func rdmaOn(ctx context.Context, n *network, f flow, d time.Duration) (g figures, err error) {
	var devices [2]*uapi.Device
	for i, end := range []*netpath.End{n.A, n.B} {
		if devices[i], err = f.start(end); err != nil {
			return g, err
		}
		defer func() { err = errors.Join(err, devices[i].Close()) }()
	}
	r, err := f.run(ctx, n, devices[0], devices[1], d)
	if err != nil {
		return g, err
	}
	return figures{rate: r.Goodput, cpu: r.ClientCPU / float64(r.Total*r.Bytes)}, nil
}

// into has so many devices send to one for about d: the rate of all in bytes,
// and the part of the packets that were dropped on the way as the first of
// times.
func into(ctx context.Context, n *network, senders int, d time.Duration) (g figures, err error) {
	f := flow{op: perf.Write, size: pathSize, flying: pathFlying}
	to, err := f.start(n.B)
	if err != nil {
		return g, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	froms := make([]*uapi.Device, senders)
	for i := range froms {
		f.port = 4791 + i
		if froms[i], err = f.start(n.A); err != nil {
			return g, err
		}
		defer func() { err = errors.Join(err, froms[i].Close()) }()
	}
	results, errs := make([]perf.Result, senders), make(chan error, senders)
	for i, from := range froms {
		go func() {
			var err error
			results[i], err = f.run(ctx, n, from, to, d)
			errs <- err
		}()
	}
	for range froms {
		err = errors.Join(err, <-errs)
	}
	sent := uint64(0)
	for i, from := range froms {
		g.rate += results[i].Goodput
		c, e := from.Counters()
		sent, err = sent+c["sent_pkts"], errors.Join(err, e)
	}
	c, e := to.Counters()
	g.times = []float64{1 - float64(c["rcvd_pkts"])/float64(max(sent, 1))}
	return g, errors.Join(err, e)
}

// tcpOn writes messages of so many bytes to a TCP connection for d, and counts
// the bytes that were read of it.
func tcpOn(ctx context.Context, n *network, size int, d time.Duration) (f figures, err error) {
	var l net.Listener
	var from net.Conn
	err = n.B.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(n.B.Addr4.String(), "0"))
		return err
	})
	if err != nil {
		return f, err
	}
	defer l.Close()
	err = n.A.Do(func() (err error) {
		from, err = net.Dial("tcp", l.Addr().String())
		return err
	})
	if err != nil {
		return f, err
	}
	defer from.Close()
	to, err := l.Accept()
	if err != nil {
		return f, err
	}
	defer to.Close()
	defer context.AfterFunc(ctx, func() { from.Close(); to.Close() })()
	n.spoil()
	began, cpu := time.Now(), perf.CPUTime()
	wrote := make(chan error, 1)
	go func() {
		message := make([]byte, size)
		for {
			if _, err := from.Write(message); err != nil {
				wrote <- err
				return
			}
		}
	}()
	_ = to.SetReadDeadline(began.Add(d))
	bytes := 0
	buf := make([]byte, size)
	for err == nil {
		var k int
		k, err = to.Read(buf)
		bytes += k
	}
	took, cpu := time.Since(began), perf.CPUTime()-cpu
	_ = from.Close()
	<-wrote
	if ctx.Err() != nil {
		return f, context.Cause(ctx)
	}
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		return f, errors.Join(err, io.ErrUnexpectedEOF)
	}
	return figures{rate: float64(bytes) / took.Seconds(), cpu: cpu.Seconds() / float64(max(bytes, 1))}, nil
}
