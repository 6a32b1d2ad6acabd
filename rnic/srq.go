package rnic

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/engine"
)

// SRQ is a shared receive queue: a ring of receives that several queue pairs
// take from, each the oldest for its next message (IBA 10.2.9).
type SRQ struct {
	d      *Device
	ev     driver.SRQEvents
	maxSGE int

	// All below is guarded by d.mu.
	ring   *ring.Queue
	recv   *ring.Consumer
	limit  uint32 // an event comes, once, when there are fewer; 0: never
	users  int    // queue pairs
	broken bool   // the producer's index made no sense: nothing is read any more
}

var _ driver.SRQDevice = (*Device)(nil)

// CreateSRQ implements driver.SRQDevice (rxe_srq.c:rxe_srq_chk_init,
// rxe_srq_from_init).
func (d *Device) CreateSRQ(init *driver.SRQInit, u *driver.Udata, ev driver.SRQEvents) (driver.SRQ, error) {
	if _, err := d.domainOf(init.PD); err != nil {
		return nil, err
	}
	if len(u.Out) < abi.RXECreateSRQRespSize {
		return nil, shortAnswer("CREATE_SRQ", len(u.Out), abi.RXECreateSRQRespSize)
	}
	if err := checkSRQSize(init.MaxWR); err != nil {
		return nil, err
	}
	if init.MaxSGE > maxSRQSGE {
		return nil, fmt.Errorf("rnic: shared receives of %d pieces: at most %d: %w", init.MaxSGE, maxSRQSGE, syscall.EINVAL)
	}
	init.MaxSGE = max(init.MaxSGE, 1)
	q, err := ring.NewIn(u.Memory, ring.RecvElemSize(int(init.MaxSGE)), int(init.MaxWR))
	if err != nil {
		return nil, fmt.Errorf("rnic: shared receive queue of %d receives: %w: %w", init.MaxWR, err, syscall.ENOMEM)
	}
	s := &SRQ{d: d, ev: ev, maxSGE: int(init.MaxSGE), ring: q, recv: q.Consumer(), limit: init.Limit}
	d.mu.Lock()
	err = d.check()
	if err == nil {
		d.srqs++
		// rxe's numbers begin at RXE_MIN_SRQ_INDEX. Nothing asks for them but
		// clients of XRC.
		(&abi.RXECreateSRQResp{SRQNum: minSRQNum + d.srqs}).Put(u.Out)
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	mi := publish(u, q)
	mi.Put(u.Out) // its first field
	return s, nil
}

// minSRQNum is where the numbers of shared receive queues begin
// (rxe_param.h: RXE_MIN_SRQ_INDEX), less one.
const minSRQNum = 0x20000

func checkSRQSize(wr uint32) error {
	if wr == 0 || wr > maxSRQWR {
		return fmt.Errorf("rnic: shared receive queue of %d receives: 1 to %d can be had: %w", wr, maxSRQWR, syscall.EINVAL)
	}
	return nil
}

// next takes the oldest receive; the last above the limit raises the event
// (rxe_resp.c:get_srq_wqe). Preconditions: d.mu is held.
func (s *SRQ) next(wr *engine.ReceiveWR) bool {
	if s.broken {
		return false
	}
	ready, err := s.recv.Ready()
	if err != nil {
		s.broken = true
		s.ev.Event(abi.EventSRQErr)
		return false
	}
	if ready == 0 {
		return false
	}
	s.d.wqe.receive(wr, s.recv.Slot(0))
	s.recv.Release(1)
	if uint32(ready-1) < s.limit {
		s.limit = 0
		s.ev.Event(abi.EventSRQLimitReached)
	}
	return true
}

// Modify implements driver.SRQ (rxe_srq.c:rxe_srq_chk_attr,
// rxe_srq_from_attr). Nothing changes on an error.
func (s *SRQ) Modify(a *abi.ModifySRQ, u *driver.Udata) error {
	var in abi.RXEModifySRQ
	if err := in.Parse(u.In); err != nil {
		return fmt.Errorf("rnic: MODIFY_SRQ: %d bytes of driver data, not %d: %w", len(u.In), abi.RXEModifySRQSize, syscall.EINVAL)
	}
	if a.AttrMask&abi.SRQMaskMaxWR != 0 {
		if err := checkSRQSize(a.MaxWR); err != nil {
			return err
		}
	}
	if a.AttrMask&abi.SRQMaskMaxWR == 0 {
		s.d.mu.Lock()
		defer s.d.mu.Unlock()
		return s.change(a, nil)
	}
	next, err := ring.NewIn(u.Memory, ring.RecvElemSize(s.maxSGE), int(a.MaxWR))
	if err != nil {
		return fmt.Errorf("rnic: shared receive queue of %d receives: %w: %w", a.MaxWR, err, syscall.ENOMEM)
	}
	mi := publish(u, next)
	var b [abi.MMInfoSize]byte
	mi.Put(b[:])
	if err := u.CopyOut(in.MmapInfoAddr, b[:]); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return s.change(a, next)
}

// change checks the limit and, with next, moves the receives there.
// Preconditions: d.mu is held.
func (s *SRQ) change(a *abi.ModifySRQ, next *ring.Queue) error {
	if err := s.d.check(); err != nil {
		return err
	}
	room, limit := s.ring, s.limit
	if next != nil {
		room = next
	}
	switch {
	case next != nil && a.MaxWR < limit:
		return fmt.Errorf("rnic: shared receive queue of %d receives: its limit is %d: %w", a.MaxWR, limit, syscall.EINVAL)
	case a.AttrMask&abi.SRQMaskLimit == 0:
	case a.SRQLimit > maxSRQWR || int(a.SRQLimit) > room.Cap():
		return fmt.Errorf("rnic: limit of %d of a shared receive queue of %d receives: %w", a.SRQLimit, room.Cap(), syscall.EINVAL)
	default:
		limit = a.SRQLimit
	}
	if next != nil {
		recv, err := s.recv.MoveTo(next)
		if err != nil {
			return fmt.Errorf("rnic: shared receive queue of %d receives: %w: %w", a.MaxWR, err, syscall.EINVAL)
		}
		s.ring, s.recv = next, recv
	}
	s.limit = limit
	return nil
}

// Query implements driver.SRQ.
func (s *SRQ) Query() (abi.QuerySRQResp, error) {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return abi.QuerySRQResp{MaxWR: uint32(s.ring.Cap()), MaxSGE: uint32(s.maxSGE), SRQLimit: s.limit}, nil
}

// Destroy implements driver.SRQ.
func (s *SRQ) Destroy() error {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.users > 0 {
		return fmt.Errorf("rnic: shared receive queue is in use by queue pairs (%d): %w", s.users, syscall.EBUSY)
	}
	s.broken = true
	return nil
}
