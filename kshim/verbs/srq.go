package verbs

import (
	"fmt"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// SRQInit holds the parameters of CreateSRQ.
type SRQInit struct {
	MaxWR  int // receives that can wait
	MaxSGE int // pieces of a receive; 0 means 1
	Limit  int // see SetLimit
}

// SRQAttr is the attributes of a shared receive queue, for Query.
type SRQAttr struct {
	MaxWR, MaxSGE int // as granted, at least as many as asked for
	Limit         int // 0 once the event has come
}

// SRQ is a shared receive queue: its receives go to the queue pairs that were
// made with it, the oldest to the next message of any (IBA 10.2.9). A receive
// completes in the receive completion queue of the queue pair that took it.
type SRQ struct {
	object
	key uint64 // user handle

	maxWR, maxSGE int

	mu   sync.Mutex // guards the fields below
	dead error
	ring *recvQueue
	gen  uint32
	next uint32            // sequence number of the next receive
	ids  map[uint32]uint64 // the caller's, by sequence number, of receives without a completion yet
	cqs  map[*CQ]struct{}  // that completions may be in
}

var (
	errShared     = kshim.Reason("queue pair takes the receives of a shared queue: post them there", syscall.EINVAL)
	errSharedFull = kshim.Reason("shared receive queue is full: messages have to take receives first", syscall.ENOMEM)
)

// CreateSRQ makes a shared receive queue. Sizes outside the device's limits are
// EINVAL; a device that has no such queues answers EOPNOTSUPP.
func (pd *PD) CreateSRQ(init SRQInit) (*SRQ, error) {
	c := pd.ctx
	s := &SRQ{object: object{ctx: c}, key: c.nextKey.Add(1), maxWR: init.MaxWR, ids: map[uint32]uint64{}, cqs: map[*CQ]struct{}{}}
	s.gen = uint32(c.nextKey.Add(1)) & genMask
	err := pd.command("create SRQ", fmt.Sprintf("%d receives", init.MaxWR), func() (err error) {
		if min(init.MaxWR-1, init.MaxSGE, init.Limit) < 0 || max(init.MaxWR, init.MaxSGE, init.Limit) > maxQueued {
			return errArgument
		}
		var resp abi.CreateSRQResp
		resp, s.ring, err = c.cmd.createSRQ(&abi.CreateSRQ{
			UserHandle: s.key, PDHandle: pd.handle, MaxWR: uint32(init.MaxWR), MaxSGE: atLeastOne(init.MaxSGE), SRQLimit: uint32(init.Limit),
		})
		if err != nil {
			return err
		}
		s.handle, s.maxSGE = resp.SRQHandle, int(resp.MaxSGE)
		c.mu.Lock()
		c.srqs[s.key] = s
		c.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// PostRecv posts receives, in order, and returns how many. It stops at the
// first that cannot be posted: ENOMEM when MaxWR wait, EINVAL for too many
// pieces, EBADF after Destroy.
func (s *SRQ) PostRecv(batch []RecvWR) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead != nil {
		return 0, s.fail(s.dead)
	}
	room, err := s.ring.p.Free()
	if err != nil {
		return 0, s.fail(err)
	}
	room -= s.ring.q.Cap() - s.maxWR // it may have more places
	for ; n < len(batch); n++ {
		if n >= room {
			err = errSharedFull
			break
		}
		if len(batch[n].SGE) > s.maxSGE {
			err = errSGE
			break
		}
		if err = ring.EncodeRecv(s.ring.p.Slot(n), ringID(true, s.gen, s.next), &batch[n]); err != nil {
			break
		}
		s.ids[s.next] = batch[n].ID
		s.next++
	}
	if n > 0 {
		s.ring.p.Publish(n)
	}
	if err != nil {
		err = s.fail(err)
	}
	return n, err
}

func (s *SRQ) fail(err error) error { return &Error{Op: "post shared receive", Err: err} }

// done takes out a receive that has its completion.
func (s *SRQ) done(seq uint32) (id uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok = s.ids[seq]
	delete(s.ids, seq)
	return id, ok
}

// SetLimit asks for one SRQ_LIMIT_REACHED event (Context.Watch), when a message
// leaves fewer than n receives; 0 asks for none. EINVAL if n is more than the
// queue holds.
func (s *SRQ) SetLimit(n int) error {
	return s.command("set limit of SRQ", fmt.Sprint(n), func() error {
		if n < 0 || n > maxQueued {
			return errArgument
		}
		req := &abi.ModifySRQ{SRQHandle: s.handle, AttrMask: abi.SRQMaskLimit, SRQLimit: uint32(n)}
		return s.ctx.cmd.invokeWith(abi.CmdModifySRQ, req, &abi.RXEModifySRQ{}, abi.RXEModifySRQSize, nil, nil)
	})
}

// Query asks the kernel for the queue's attributes.
func (s *SRQ) Query() (attr SRQAttr, err error) {
	err = s.command("query SRQ", "", func() error {
		var resp abi.QuerySRQResp
		err := s.ctx.cmd.invoke(abi.CmdQuerySRQ, &abi.QuerySRQ{SRQHandle: s.handle}, &resp, nil)
		attr = SRQAttr{MaxWR: int(resp.MaxWR), MaxSGE: int(resp.MaxSGE), Limit: int(resp.SRQLimit)}
		return err
	})
	return attr, err
}

// Destroy frees the queue, and forgets the receives that wait. EBUSY while
// queue pairs use it, EBADF the second time.
func (s *SRQ) Destroy() error {
	return s.ctx.call("destroy SRQ", "", func() error { return s.destroy(errDestroyed) })
}

func (s *SRQ) destroy(why error) error {
	return s.free(func() error {
		return s.ctx.cmd.invoke(abi.CmdDestroySRQ, &abi.DestroySRQ{SRQHandle: s.handle}, &abi.DestroySRQResp{}, nil)
	}, func() { s.drop(why) })
}

// drop lets go of the client's memory.
func (s *SRQ) drop(why error) {
	leave(s.ctx, s.ctx.srqs, s.key)
	s.mu.Lock()
	cqs := s.cqs
	if s.dead == nil {
		s.dead = why
		s.ring.close()
	}
	s.cqs = nil
	s.mu.Unlock()
	for cq := range cqs {
		cq.mu.Lock()
		delete(cq.srqs, s.gen)
		cq.mu.Unlock()
	}
}

// share has completions of the queue's receives in a queue pair's completion
// queue find their way.
func (s *SRQ) share(qp *QP) {
	s.mu.Lock()
	s.cqs[qp.recvCQ] = struct{}{}
	s.mu.Unlock()
	cq := qp.recvCQ
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.srqs == nil {
		cq.srqs, cq.shared = map[uint32]*SRQ{}, map[uint32]*QP{}
	}
	cq.srqs[s.gen], cq.shared[qp.num] = s, qp
}

// forget ends that for a completion queue that is destroyed.
func (s *SRQ) forget(cq *CQ) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cqs, cq)
}

// unshare ends that for the queue pair. Completions of receives that it took
// are still given: their buffers are the program's again.
func (s *SRQ) unshare(qp *QP) {
	cq := qp.recvCQ
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.shared[qp.num] == qp {
		delete(cq.shared, qp.num)
	}
}

// resolveShared is resolve for a shared receive. The queue pair is nil when it
// is gone.
func (cq *CQ) resolveShared(s *SRQ, wc *WC, seq uint32) (qp *QP, kept, ok bool) {
	id, ok := s.done(seq)
	wc.ID = id
	if wc.Status != abi.WCSuccess {
		*wc = WC{ID: id, Status: wc.Status, Opcode: abi.WCRecv, VendorErr: wc.VendorErr, QPN: wc.QPN}
	}
	return cq.shared[wc.QPN], true, ok
}
