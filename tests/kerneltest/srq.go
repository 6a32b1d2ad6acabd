package kerneltest

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

type SRQ struct {
	d      *Device
	Init   driver.SRQInit
	Events driver.SRQEvents
}

func (d *Device) CreateSRQ(init *driver.SRQInit, u *driver.Udata, ev driver.SRQEvents) (driver.SRQ, error) {
	defer d.step("CreateSRQ")()
	if len(u.Out) < abi.RXECreateSRQRespSize {
		return nil, syscall.EINVAL
	}
	s := &SRQ{d: d, Init: *init, Events: ev}
	if err := d.born(s, "srq"); err != nil {
		return nil, err
	}
	ring := make([]byte, 1024)
	(&abi.RXECreateSRQResp{MI: abi.MMInfo{Offset: u.Mmap(ring), Size: uint32(len(ring))}, SRQNum: 1}).Put(u.Out)
	return s, nil
}

func (s *SRQ) Modify(a *abi.ModifySRQ, u *driver.Udata) error {
	defer s.d.step("SRQ.Modify")()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if s.d.Refuse != nil {
		return s.d.Refuse
	}
	if a.AttrMask&abi.SRQMaskLimit != 0 {
		s.Init.Limit = a.SRQLimit
	}
	return nil
}

func (s *SRQ) Query() (abi.QuerySRQResp, error) {
	defer s.d.step("SRQ.Query")()
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	return abi.QuerySRQResp{MaxWR: s.Init.MaxWR, MaxSGE: s.Init.MaxSGE, SRQLimit: s.Init.Limit}, nil
}

func (s *SRQ) Destroy() error {
	defer s.d.step("SRQ.Destroy")()
	return s.d.died(s, func(o any) bool {
		q, ok := o.(*QP)
		return ok && q.Init.SRQ == driver.SRQ(s)
	})
}
