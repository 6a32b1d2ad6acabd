package rnic

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// domain is a protection domain.
type domain struct {
	d  *Device
	id mem.PD
}

// AllocPD implements driver.Device.
func (d *Device) AllocPD() (driver.PD, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	if len(d.pds) >= maxPD {
		return nil, fmt.Errorf("rnic: all %d protection domains of %s are in use: %w", maxPD, d.name, syscall.ENOMEM)
	}
	for {
		d.nextPD++
		if _, taken := d.pds[d.nextPD]; !taken {
			d.pds[d.nextPD] = struct{}{}
			return &domain{d, d.nextPD}, nil
		}
	}
}

// Dealloc implements driver.PD.
func (p *domain) Dealloc() error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	delete(p.d.pds, p.id)
	return nil
}

// domainOf returns pd as one of d's.
func (d *Device) domainOf(pd driver.PD) (*domain, error) {
	p, ok := pd.(*domain)
	if !ok || p.d != d {
		return nil, fmt.Errorf("rnic: the protection domain is not one of %s: %w", d.name, syscall.EINVAL)
	}
	return p, nil
}

// region is a memory region.
type region struct {
	d *Device
	r *mem.Region
}

// memoryOf is m for the table of regions.
func memoryOf(m driver.Memory) mem.Memory {
	return mem.Memory{Bytes: m.Bytes, Far: m.Far, Addr: m.Addr, Len: m.Len}
}

// RegMR implements driver.Device.
func (d *Device) RegMR(pd driver.PD, memory driver.Memory, iova uint64, access abi.AccessFlags) (driver.MR, error) {
	p, err := d.domainOf(pd)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return nil, err
	}
	r, err := d.regions.Register(p.id, memoryOf(memory), iova, access)
	if err != nil {
		return nil, fmt.Errorf("rnic: device %s: %w", d.name, err)
	}
	d.share(r, memory)
	return &region{d, r}, nil
}

// LKey and RKey are the same, as with rxe.
func (m *region) LKey() uint32 { return m.r.Key() }
func (m *region) RKey() uint32 { return m.r.Key() }

// Dereg implements driver.MR. The engine uses user memory under the device's
// lock only, so with the lock held and the key gone nothing does any more, but
// for peers on this host that read it: they are waited for.
func (m *region) Dereg() error {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.regions.Deregister(m.r.Key()); err != nil {
		return fmt.Errorf("rnic: device %s: deregister key %#x: %w: %w", m.d.name, m.r.Key(), err, syscall.EINVAL)
	}
	m.d.unshare(m.r)
	return nil
}

// Rereg implements driver.MR. The engine looks a key up for each packet and
// uses user memory under the device's lock only, so a change takes effect
// between two packets; of a message that is on its way the rest meets the
// changed region.
func (m *region) Rereg(r *driver.Rereg) error {
	var c mem.Change
	if r.Flags&abi.ReregPD != 0 {
		p, err := m.d.domainOf(r.PD)
		if err != nil {
			return err
		}
		c.PD = &p.id
	}
	if r.Flags&abi.ReregAccess != 0 {
		c.Access = &r.Access
	}
	if r.Flags&abi.ReregTranslation != 0 {
		next := memoryOf(r.Mem)
		c.Mem, c.IOVA = &next, r.IOVA
	}
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if err := m.d.check(); err != nil {
		return err
	}
	if err := m.d.regions.Reregister(m.r.Key(), c); err != nil {
		return fmt.Errorf("rnic: device %s: change key %#x: %w", m.d.name, m.r.Key(), err)
	}
	if c.Mem != nil {
		m.d.unshare(m.r)
		m.d.share(m.r, r.Mem)
	}
	return nil
}

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
