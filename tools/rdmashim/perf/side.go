package perf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync/atomic"

	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// Side is one of the two: memory and queue pairs on a device. It is for one
// goroutine at a time.
//
// Its memory has two parts of slots, in and out: messages leave out and arrive
// at in, READs fetch from the peer's out, atomics count in the peer's in. A
// message lies at the end of its slot, so that its last byte is that of an
// aligned word.
type Side struct {
	Config Config
	// Client says which side this is: the one that asks.
	Client bool

	end    peer.Endpoint
	rdma   *uapi.Device
	cq     uapi.CQ
	qps    []uapi.QP
	mem    []byte
	mr     uapi.MR
	peer   uapi.Region
	slots  int
	stride int

	wc       []uapi.WC
	wrs      []uapi.WR // of a post
	receives []uapi.WR
	recvSGE  []uapi.SGE

	size    int // of the run
	queues  []queue
	flying  int // messages posted and not known to be done
	arrived int // receives completed
	total   int // messages of the run that are done, warm-up included
	seq     byte
	glances int // looks at memory between looks at the completion queue
}

// queue counts a queue pair's work in a phase of a run.
type queue struct{ posted, done, silent int }

// NewSide makes memory and queue pairs on a device. Close gives them back; the
// device stays open.
func NewSide(rdma *uapi.Device, c Config, client bool) (_ *Side, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	info, err := rdma.QueryDevice()
	if err != nil {
		return nil, err
	}
	if c, err = c.fit(info.MaxCQE); err != nil {
		return nil, err
	}
	s := &Side{Config: c, Client: client, rdma: rdma}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.slots, s.stride = c.layout()
	if err = s.end.Share(rdma); err != nil {
		return nil, err
	}
	memory := s.end.Alloc
	if c.Heap {
		memory = s.end.AllocHeap
	}
	m, err := memory(int(c.Bytes()), uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead|uapi.AccessRemoteAtomic)
	if err != nil {
		return nil, err
	}
	s.mem, s.mr = m.Buf, m.MR
	entries := c.entries()
	// A device in this process works when it is polled; a kernel's does so
	// anyway.
	if s.glances = 1; info.Kind == "host" {
		s.glances = 64
	}
	if s.cq, err = rdma.CreateCQ(entries); err != nil {
		return nil, err
	}
	reads := 0 // as many as by default
	if c.Op == Read {
		reads = min(c.Depth, info.MaxRdAtomic)
	}
	for range c.QPs {
		qp, err := rdma.CreateQPWith(uapi.QPConfig{
			SendCQ: s.cq, RecvCQ: s.cq, SendDepth: c.Depth, RecvDepth: c.receives(),
			Inline: c.Inline, MTU: c.MTU, MaxRdAtomic: reads, PD: s.end.PD,
		})
		if err != nil {
			return nil, fmt.Errorf("queue pair %d of %d: %w", len(s.qps)+1, c.QPs, err)
		}
		s.qps = append(s.qps, qp)
	}
	s.queues = make([]queue, c.QPs)
	s.wc = make([]uapi.WC, min(entries, 256))
	s.wrs, _ = requests(c.List)
	s.receives, s.recvSGE = requests(max(len(s.wc), c.receives()))
	return s, nil
}

// requests gives work requests of one piece of memory each.
func requests(n int) ([]uapi.WR, []uapi.SGE) {
	wrs, sge := make([]uapi.WR, n), make([]uapi.SGE, n)
	for i := range wrs {
		wrs[i].SGE = sge[i : i+1]
	}
	return wrs, sge
}

// Connect introduces the queue pairs of both sides to each other.
func (s *Side) Connect(ctx context.Context, conn net.Conn) error {
	for i, qp := range s.qps {
		var regions []uapi.MR
		if i == 0 {
			regions = []uapi.MR{s.mr}
		}
		there, err := s.rdma.ConnectOver(ctx, conn, qp, regions, nil)
		if err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if len(there.Regions) != 1 || there.Regions[0].Length < uint64(len(s.mem)) {
			return errors.New("the peer offered no memory of the size that was agreed on")
		}
		s.peer = there.Regions[0]
	}
	return nil
}

// Close gives everything back.
func (s *Side) Close() error {
	var errs []error
	for _, qp := range s.qps {
		errs = append(errs, s.rdma.DestroyQP(qp))
	}
	if s.cq > 0 {
		errs = append(errs, s.rdma.DestroyCQ(s.cq))
	}
	errs = append(errs, s.end.Close())
	s.qps, s.cq, s.mem = nil, 0, nil
	return errors.Join(errs...)
}

// in and out are where a slot's message lies in the memory of either side.
func (s *Side) in(slot int) int  { return (slot+1)*s.stride - s.size }
func (s *Side) out(slot int) int { return s.in(slot) + s.slots*s.stride }

// last is the word that ends the message in a slot of in.
func (s *Side) last(slot int) (*atomic.Uint64, error) {
	return uapi.Uint64At(s.mem, (slot+1)*s.stride-8)
}

// Prepare makes a side ready for a run of messages of size bytes. The other
// side may begin when it has returned.
func (s *Side) Prepare(size int) error {
	if size < 1 || size > s.stride {
		return fmt.Errorf("a run of %d bytes was not agreed on", size)
	}
	first := s.size == 0
	s.size, s.total, s.arrived, s.seq = size, 0, 0, 0
	clear(s.mem[:s.slots*s.stride])
	s.fill(0)
	if !first {
		return nil // receives are posted, of the longest size
	}
	for i := range s.qps {
		if err := s.receive(i, s.Config.receives()); err != nil {
			return err
		}
	}
	return nil
}

// A request's id has the queue pair's index below and, of those that complete,
// how many messages it has posted until then.
const (
	indexBits           = 16
	receiveID uapi.WRID = 1 << 62
)

// receive posts n receives of queue pair i.
func (s *Side) receive(i, n int) error {
	if n == 0 {
		return nil
	}
	slot := i % s.slots
	for k := range n {
		// The room is the slot's; a message lies at its beginning.
		s.recvSGE[k] = uapi.SGE{MR: s.mr, Offset: uint64(slot * s.stride), Length: uint64(s.stride)}
		s.receives[k].Op, s.receives[k].ID = uapi.OpRecv, receiveID|uapi.WRID(i)
	}
	_, err := s.rdma.Post(s.qps[i], s.receives[:n])
	return err
}

// poll takes completions, at least one.
func (s *Side) poll(ctx context.Context) (int, error) {
	if s.Config.Events {
		n, err := s.rdma.WaitQueue(ctx, s.cq, s.wc)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return max(n, 0), err
	}
	for spins := 1; ; spins++ {
		if n, err := s.rdma.PollQueue(s.cq, s.wc); n != 0 || err != nil {
			return max(n, 0), err
		}
		if err := rest(ctx, spins); err != nil {
			return 0, err
		}
	}
}

// alone says that one goroutine runs at a time.
var alone = runtime.GOMAXPROCS(0) == 1

// rest lets a spinning loop end once in a while, and others run: often only
// where they would not run otherwise, since a loop that polls should not be
// switched.
func rest(ctx context.Context, spins int) error {
	if spins%1024 != 0 {
		return nil
	}
	if alone || spins%(1<<20) == 0 {
		runtime.Gosched()
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// take notes n completions and posts the receives that were used up anew.
func (s *Side) take(n int) error {
	used, of := 0, -1
	for k := range s.wc[:n] {
		wc := &s.wc[k]
		if wc.Status != uapi.WCSuccess {
			return wc.Err()
		}
		i := int(wc.WRID & (1<<indexBits - 1))
		if i >= len(s.queues) {
			return fmt.Errorf("a completion came that nothing was posted for: %v", wc)
		}
		if wc.WRID&receiveID == 0 {
			q := &s.queues[i]
			posted := int(wc.WRID >> indexBits)
			s.flying -= posted - q.done
			s.total += posted - q.done
			q.done = posted
			continue
		}
		s.arrived++
		if i != of {
			if err := s.receive(of, used); err != nil {
				return err
			}
			used, of = 0, i
		}
		used++
	}
	return s.receive(of, used)
}
