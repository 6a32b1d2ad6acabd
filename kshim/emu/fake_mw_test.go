package emu

import "github.com/rdmashim/rdmashim/kshim/driver"

type fakeMW struct {
	d  *fakeDevice
	pd driver.PD
}

var _ driver.MWDevice = (*fakeDevice)(nil)

func (d *fakeDevice) AllocMW(pd driver.PD, _ bool) (driver.MW, error) {
	defer d.step("AllocMW")()
	w := &fakeMW{d, pd}
	return w, d.born(w, "mw")
}

func (w *fakeMW) RKey() uint32 { return 0x4200 }

func (w *fakeMW) Dealloc() error {
	defer w.d.step("MW.Dealloc")()
	return w.d.died(w, func(any) bool { return false })
}
