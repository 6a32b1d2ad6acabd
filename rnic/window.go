package rnic

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// window is a memory window; the engine binds it (rnic/mem/window.go).
type window struct {
	d *Device
	w *mem.Window
}

var _ driver.MWDevice = (*Device)(nil)

// AllocMW implements driver.MWDevice.
func (d *Device) AllocMW(pd driver.PD, type2 bool) (driver.MW, error) {
	p, err := d.domainOf(pd)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	w, err := d.regions.AllocateWindow(p.id, type2)
	if err != nil {
		return nil, fmt.Errorf("rnic: device %s: %w", d.name, err)
	}
	return &window{d, w}, nil
}

// RKey implements driver.MW.
func (w *window) RKey() uint32 {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	return w.w.Key()
}

// Dealloc implements driver.MW.
func (w *window) Dealloc() error {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.d.regions.FreeWindow(w.w)
	return nil
}
