package drive

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tests/leak"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience bounds waits for events that must come; it measures nothing.
const patience = 60 * time.Second

// device is the least that a Driver drives: each packet is a completion of the
// queue whose number it names.
type device struct {
	Driver
	in      []link.Packet
	quit    chan struct{}
	down    atomic.Bool
	owes    atomic.Bool
	holds   atomic.Bool  // the last batch took room
	vain    atomic.Int32 // Receives in vain since the last packet
	prompt  atomic.Int32 // acknowledgements that were sent after one of them at most
	failed  chan error
	another func() // what a packet of no queue wakes
	next    func() // what the Receive behind it does first
	procs   sync.WaitGroup
	closing sync.Once

	mu     sync.Mutex
	queues []*queue // what they hold is guarded by mu

	sending sync.Mutex
	peer    link.Link
}

// queue is a completion queue.
type queue struct {
	n     int // completions
	armed bool
	event chan struct{}
}

var kinds = map[string]func(t testing.TB) [2]link.Link{
	"sim": linktest.Sim, "udp": func(t testing.TB) [2]link.Link { return linktest.UDP(t, "127.0.0.1") },
}

// newDevice starts a device with some queues on a link, to which peer sends.
func newDevice(t testing.TB, near, peer link.Link, queues int) *device {
	d := &device{
		in: make([]link.Packet, 16), quit: make(chan struct{}), peer: peer,
		failed: make(chan error, 1),
	}
	for range queues {
		d.queues = append(d.queues, &queue{event: make(chan struct{}, 1)})
	}
	d.Init(d, near, d.quit)
	d.procs.Go(d.Listen)
	t.Cleanup(d.close)
	return d
}

func (d *device) close() {
	d.closing.Do(func() {
		d.down.Store(true)
		close(d.quit)
		_ = d.link.Close()
		d.procs.Wait()
		d.End()
		_ = d.peer.Close()
	})
}

// send sends the device a packet for a queue.
func (d *device) send(n int) {
	d.sending.Lock()
	defer d.sending.Unlock()
	h := wire.BTH{Opcode: wire.RCSendOnly, PKey: wire.DefaultPKey, DestQPN: wire.QPN(n)}
	if err := d.peer.Send([]link.Packet{{Peer: d.link.Caps().Local, Head: h.Append(nil)}}); err != nil {
		panic(err)
	}
}

func (d *device) Receive() (int, error) {
	if next := d.next; next != nil {
		d.next = nil
		next()
	}
	n, err := d.link.Recv(d.in)
	d.holds.Store(n > 0)
	if d.vain.Add(1); n == 0 || err != nil {
		return 0, err
	}
	d.vain.Store(0)
	d.Arrived(d.now())
	for _, p := range d.in[:n] {
		var h wire.BTH
		if h.Parse(p.Head) == nil {
			if int(h.DestQPN) == len(d.queues) {
				d.another()
				d.Woke()
				continue
			}
			d.owes.Store(true)
			d.complete(int(h.DestQPN))
		}
	}
	return n, nil
}

// complete adds a completion to a queue.
func (d *device) complete(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[n]
	q.n++
	event := q.armed
	q.armed = false
	if event {
		hint(q.event)
	}
	d.Announce(event)
}

func (d *device) CatchUp() bool {
	if !d.owes.Swap(false) {
		return false
	}
	if d.vain.Load() <= 1 {
		d.prompt.Add(1)
	}
	return true
}

func (d *device) Owes() bool  { return d.owes.Load() }
func (d *device) SendOwed()   { d.CatchUp() }
func (d *device) InUse() bool { return d.holds.Load() }
func (d *device) Down() bool  { return d.down.Load() }

// Fail ends what the programs wait for, as flushed requests do.
func (d *device) Fail(err error) {
	d.down.Store(true)
	for i := range d.queues {
		d.complete(i)
	}
	d.failed <- err
}

// take takes a completion out.
func (d *device) take(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queues[n]
	if q.n == 0 {
		return false
	}
	q.n--
	return true
}

var errDown = errors.New("the device is down")

// arm asks for an event.
func (d *device) arm(n int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down.Load() {
		return errDown
	}
	d.Arm()
	d.queues[n].armed = true
	return nil
}

// waiter is a program that waits as kshim/verbs does: it looks at its queue,
// leads, and else arms and waits for the event.
type waiter struct {
	d     *device
	n     int // of its queue
	wakes atomic.Uint32
	led   int // how often it led
}

func (w *waiter) wait(ctx context.Context) error {
	for {
		news, seen := w.d.News(), w.wakes.Load()
		if w.d.take(w.n) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.d.Lead(ctx, news, &w.wakes, seen) {
			w.led++
			continue
		}
		if err := w.d.arm(w.n); err != nil {
			return err
		}
		if w.d.take(w.n) {
			return nil
		}
		select {
		case <-w.d.queues[w.n].event:
		case <-ctx.Done():
		}
	}
}

// messages waits for n packets, each of which is sent when the one before was
// taken.
func (w *waiter) messages(t testing.TB, n int) {
	for range n {
		w.d.send(w.n)
		require.NoError(t, w.wait(t.Context()))
	}
}
