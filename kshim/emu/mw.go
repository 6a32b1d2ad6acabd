package emu

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// window is struct ib_mw. That it is bound to a region is the device's matter.
type window struct {
	object
	mw driver.MW
}

func (w *window) destroy() error { return w.mw.Dealloc() }
func (w *window) released()      {}

// The types of windows: enum ib_mw_type.
const (
	typeMW1 = 1
	typeMW2 = 2
)

func allocMW(c *call) error {
	f := c.file
	dev, ok := f.dev.Device.(driver.MWDevice)
	if !ok {
		return fail(syscall.EOPNOTSUPP, "the device has no memory windows")
	}
	req := decode[abi.AllocMW](c)
	pd, err := f.acquire(kindPD, req.PDHandle)
	if err != nil {
		return err
	}
	defer pd.release()
	if req.MWType != typeMW1 && req.MWType != typeMW2 {
		return fail(syscall.EINVAL, "%d is not a type of memory windows", req.MWType)
	}
	w := &window{object: object{kind: kindMW, needs: []*object{pd}}}
	w.body = w
	return c.add(&w.object, nil, func() (err error) {
		w.mw, err = dev.AllocMW(pd.body.(*protectionDomain).pd, req.MWType == typeMW2)
		return err
	}, func() error {
		return c.reply(&abi.AllocMWResp{MWHandle: w.handle, RKey: w.mw.RKey()})
	})
}
