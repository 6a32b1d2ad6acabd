package emu

import (
	"github.com/rdmashim/rdmashim/kshim/abi"
)

// protectionDomain is struct ib_pd.
type protectionDomain struct {
	object
	pd PD
}

func (p *protectionDomain) destroy() error { return p.pd.Dealloc() }
func (p *protectionDomain) released()      {}

func allocPD(c *call) error {
	f := c.file
	if err := f.hasContext(); err != nil {
		return err
	}
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
	return c.finish(&p.object, func() int {
		(&abi.AllocPDResp{PDHandle: p.handle}).Put(c.out[:])
		return abi.AllocPDRespSize
	})
}

// finish is how every create ends: the new object gets its handle, the response
// is encoded and copied out. If it cannot be, the object is destroyed again, as
// the client never learnt of it.
func (c *call) finish(o *object, encode func() int) error {
	if err := c.file.create(o); err != nil {
		c.file.undo(o)
		return err
	}
	err := c.respond(encode())
	if err != nil {
		_ = o.end(true)
	}
	return err
}

// undo destroys what has no handle yet.
func (f *uverbsFile) undo(o *object) {
	if err := o.body.destroy(); err != nil {
		f.proc.machine.log.Warn("emu: the device did not destroy an object",
			"device", f.dev.name, "kind", o.kind.String(), "error", err)
	}
	f.dev.uncharge(o.kind)
	o.body.released()
}

func deallocPD(c *call) error {
	var req abi.DeallocPD
	if err := req.Parse(c.req); err != nil {
		return err
	}
	_, err := c.file.destroy(kindPD, req.PDHandle)
	return err
}
