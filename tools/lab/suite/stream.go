package suite

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// The measurements below run over streams of any carrier. A stream carries
// orders: a head, the messages that it tells of, and the answer. The other side
// answers orders until the stream ends.

// order is the other side's task with the messages.
type order struct {
	n    uint64 // messages
	size uint32 // bytes each
	echo bool   // answer each by itself
}

const (
	headSize   = 16
	answerSize = 8 // bytes: the processor time of the other side
	// mostRead is how many bytes the other side reads at a time, at most.
	mostRead = 256 << 10
)

// cpuTime is the processor time of this process in nanoseconds.
func cpuTime() uint64 { return uint64(perf.CPUTime()) }

// head is the order as it travels.
func (o order) head() []byte {
	head := make([]byte, headSize)
	binary.BigEndian.PutUint64(head, o.n)
	binary.BigEndian.PutUint32(head[8:], o.size)
	if o.echo {
		head[12] = 1
	}
	return head
}

// give gives an order over s and moves its messages. It returns the processor
// time that the other side has used so far. lap is called behind each echo.
func give(s stream, o order, message []byte, lap func()) (cpu uint64, err error) {
	head := o.head()
	_, err = s.Write(head)
	for range o.n {
		if err == nil {
			_, err = s.Write(message[:o.size])
		}
		if err == nil && o.echo {
			_, err = io.ReadFull(s, message[:o.size])
			lap()
		}
	}
	if err == nil {
		_, err = io.ReadFull(s, head[:answerSize])
	}
	return binary.BigEndian.Uint64(head), err
}

// answer carries out the orders of a stream.
func answer(s stream) {
	defer s.Close()
	var head [headSize]byte
	var buf []byte
	for {
		if _, err := io.ReadFull(s, head[:]); err != nil {
			return
		}
		n, size := binary.BigEndian.Uint64(head[:]), uint64(binary.BigEndian.Uint32(head[8:]))
		echo, left := head[12] == 1, n*size
		piece := uint64(mostRead)
		if echo {
			piece = size
		}
		if need := min(piece, left); uint64(len(buf)) < need {
			buf = make([]byte, need)
		}
		for left > 0 {
			k := min(piece, left)
			_, err := io.ReadFull(s, buf[:k])
			if err == nil && echo {
				_, err = s.Write(buf[:k])
			}
			if err != nil {
				return
			}
			left -= k
		}
		binary.BigEndian.PutUint64(head[:], cpuTime())
		if _, err := s.Write(head[:answerSize]); err != nil {
			return
		}
	}
}

// figures are the results of a measurement.
type figures struct {
	rate  float64   // units a second
	cpu   float64   // seconds of processor time of both sides for a unit
	times []float64 // µs that each took
}

// work is the work that is measured over a carrier.
type work struct {
	unit int // the count of a round of it: bytes, or 1
	// prepare opens the streams that the work needs, and returns the function
	// that does n rounds.
	prepare func(ctx context.Context, c *carrier) (func(n int, f *figures) error, error)
}

// moving moves a message of size bytes over each of so many streams at once.
// Several have moved one before that counts: windows have grown then.
func moving(size, streams int) work {
	return work{size * streams, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
		all := make([]stream, streams)
		for i := range all {
			var err error
			if all[i], err = c.keep(ctx); err != nil {
				return nil, err
			}
		}
		message := make([]byte, size)
		move := func(n int) error {
			return together(streams, func(i int) error {
				_, err := give(all[i], order{n: uint64(n), size: uint32(size)}, message, nil)
				return err
			})
		}
		if streams > 1 {
			if err := move(1); err != nil {
				return nil, err
			}
		}
		return func(n int, f *figures) error {
			return f.both(all[0], n*size*streams, func() error { return move(n) })
		}, nil
	}}
}

// exchanging sends a message of size bytes there and back.
func exchanging(size int) work {
	return work{1, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
		s, err := c.keep(ctx)
		message := make([]byte, size)
		return func(n int, f *figures) error {
			return f.both(s, n, func() error {
				f.times = make([]float64, 0, n)
				last := time.Now()
				_, err := give(s, order{n: uint64(n), size: uint32(size), echo: true}, message, func() {
					now := time.Now()
					f.times = append(f.times, float64(now.Sub(last))/1e3)
					last = now
				})
				return err
			})
		}, err
	}}
}

// opening opens a stream for an exchange of a few bytes, and closes it. It
// notes how long opening takes.
var opening = work{1, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
	first, err := c.keep(ctx)
	return func(n int, f *figures) error {
		return f.both(first, n, func() error {
			f.times = make([]float64, n)
			for i := range f.times {
				took, err := once(ctx, c)
				if err != nil {
					return err
				}
				f.times[i] = float64(took) / 1e3
			}
			return nil
		})
	}, err
}}

// once opens a stream, which takes so long, exchanges a few bytes, and closes
// it.
func once(ctx context.Context, c *carrier) (took time.Duration, err error) {
	began := time.Now()
	s, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	took = time.Since(began)
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	_, err = give(s, order{}, nil, nil)
	return took, err
}

// requests returns a function that makes an HTTP request over a carrier, of
// which as many connections are kept as there are clients. It tells the
// processor time that the other side has used so far.
func requests(ctx context.Context, c *carrier, clients int) func() (cpu uint64, err error) {
	transport := &http.Transport{
		MaxIdleConnsPerHost: clients,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			s, err := c.keep(ctx)
			if err != nil {
				return nil, err
			}
			return s.(net.Conn), nil
		},
	}
	return func() (cpu uint64, err error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://there/", nil)
		if err != nil {
			return 0, err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		_, err = fmt.Fscanln(response.Body, &cpu)
		return cpu, err
	}
}

// requesting makes an HTTP request, as one of so many clients.
func requesting(clients int) work {
	return work{1, func(ctx context.Context, c *carrier) (func(int, *figures) error, error) {
		get := requests(ctx, c, clients)
		return func(n int, f *figures) error {
			var next atomic.Int64
			return f.around(get, n, func() error {
				return together(clients, func(int) (err error) {
					for err == nil && int(next.Add(1)) <= n {
						_, err = get()
					}
					return err
				})
			})
		}, nil
	}}
}

// together runs f for 0 … n-1 at once.
func together(n int, f func(i int) error) error {
	errs := make(chan error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(i); err != nil {
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// both notes the processor time that both sides take for n of what f does, and
// asks for the other side's over s.
func (f *figures) both(s stream, n int, do func() error) error {
	return f.around(func() (uint64, error) { return give(s, order{}, nil, nil) }, n, do)
}

func (f *figures) around(ask func() (uint64, error), n int, do func() error) error {
	there, err := ask()
	if err != nil {
		return err
	}
	here := cpuTime()
	if err := do(); err != nil {
		return err
	}
	here = cpuTime() - here
	after, err := ask()
	f.cpu = float64(here+after-there) / 1e9 / float64(n)
	return err
}

// over measures a work over a carrier for about d, once both processes have
// done it for as long: memory that is touched first and stacks that grow cost
// an end of ours a third of its first 0.2 s, where TCP has a kernel.
func over(ctx context.Context, name, device string, w work, d time.Duration, other partner) (f figures, err error) {
	c, stop, err := reach(ctx, name, device, other)
	if err != nil {
		return f, err
	}
	defer stop()
	do, err := w.prepare(ctx, c)
	for warm := 0; err == nil && warm < 2; warm++ {
		f.rate, err = paced(ctx, w.unit, d, func(n int) error { return do(n, &f) })
	}
	return f, err
}

// failures opens n streams of a carrier at once, and returns how many failed.
func failures(ctx context.Context, name, device string, n int, other partner) (float64, error) {
	c, stop, err := reach(ctx, name, device, other)
	if err != nil {
		return 0, err
	}
	defer stop()
	var failed atomic.Int64
	_ = together(n, func(int) error {
		_, err := once(ctx, c)
		if err != nil {
			failed.Add(1)
		}
		return err
	})
	return float64(failed.Load()), context.Cause(ctx)
}

// reach starts the other side, and the carrier to it.
func reach(ctx context.Context, name, device string, other partner) (c *carrier, stop func(), err error) {
	to, stopOther, err := other(ctx)
	if err != nil {
		return nil, nil, err
	}
	if c, err = newCarrier(ctx, name, device, to); err != nil {
		stopOther()
		return nil, nil, err
	}
	unhook := context.AfterFunc(ctx, c.closeKept)
	return c, func() {
		unhook()
		c.closeKept()
		c.end()
		stopOther()
	}, nil
}
