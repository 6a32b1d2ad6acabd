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
	p := &protectionDomain{object: object{kind: kindPD}}
	p.body = p
	return c.add(&p.object, nil, func() (err error) {
		p.pd, err = c.file.dev.AllocPD()
		return err
	}, func() error {
		return c.reply(&abi.AllocPDResp{PDHandle: p.handle})
	})
}
