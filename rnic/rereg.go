package rnic

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/rnic/mem"
)

// Rereg implements driver.MR. The engine looks a key up for each packet and
// touches user memory under the device's lock only, so a change takes effect
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
		c.Mem, c.IOVA = r.Mem, r.IOVA
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
		m.d.recall(m.r.Lease())
		m.d.lease(m.r, c.Mem)
	}
	return nil
}
