package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// protectionDomain is struct ib_pd.
type protectionDomain struct {
	object
	pd driver.PD
}

func (p *protectionDomain) destroy() error { return p.pd.Dealloc() }
func (p *protectionDomain) released()      {}

func allocPD(c *call) error {
	f := c.file
	if err := f.dev.charge(kindPD); err != nil {
		return err
	}
	pd, err := f.dev.AllocPD()
	if err != nil {
		f.dev.uncharge(kindPD)
		return err
	}
	p := &protectionDomain{object: object{kind: kindPD}, pd: pd}
	p.body = p
	return c.finish(&p.object, func() error {
		return c.reply(&abi.AllocPDResp{PDHandle: p.handle})
	})
}
