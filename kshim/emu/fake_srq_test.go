package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

type fakeSRQ struct {
	d    *fakeDevice
	init driver.SRQInit
	ev   driver.SRQEvents
	ring []byte
}

var _ driver.SRQDevice = (*fakeDevice)(nil)

func (d *fakeDevice) CreateSRQ(init *driver.SRQInit, u *driver.Udata, ev driver.SRQEvents) (driver.SRQ, error) {
	defer d.step("CreateSRQ")()
	if len(u.Out) < abi.RXECreateSRQRespSize {
		return nil, syscall.EINVAL
	}
	s := &fakeSRQ{d: d, init: *init, ev: ev, ring: make([]byte, 1024)}
	if err := d.born(s, "srq"); err != nil {
		return nil, err
	}
	(&abi.RXECreateSRQResp{MI: abi.MMInfo{Offset: u.Mmap(s.ring), Size: uint32(len(s.ring))}, SRQNum: 1}).Put(u.Out)
	return s, nil
}

func (s *fakeSRQ) Modify(a *abi.ModifySRQ, u *driver.Udata) error {
	defer s.d.step("SRQ.Modify")()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.refuse != nil {
		return s.d.refuse
	}
	if a.AttrMask&abi.SRQMaskLimit != 0 {
		s.init.Limit = a.SRQLimit
	}
	return nil
}

func (s *fakeSRQ) Query() (abi.QuerySRQResp, error) {
	defer s.d.step("SRQ.Query")()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return abi.QuerySRQResp{MaxWR: s.init.MaxWR, MaxSGE: s.init.MaxSGE, SRQLimit: s.init.Limit}, nil
}

func (s *fakeSRQ) Destroy() error {
	defer s.d.step("SRQ.Destroy")()
	return s.d.died(s, func(o any) bool {
		q, ok := o.(*fakeQP)
		return ok && q.init.SRQ == driver.SRQ(s)
	})
}
