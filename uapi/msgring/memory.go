package msgring

import (
	"errors"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// slot is the length of a receive's memory, in bytes: a control message's, and
// as much again, so that a longer one is seen and not an error of the device.
const slot = 2 * core.ControlLen

// memory holds a connection's objects on its device besides the queue pair, in
// a protection domain of its own: the peer's key opens the ring and nothing of
// another connection.
type memory struct {
	device *uapi.Device
	pd     uapi.PD
	cq     uapi.CQ
	ring   region // the peer writes it
	// local is staging, then room for one control message to be sent, then a
	// slot for each receive.
	local region
}

type region struct {
	mem  []byte
	mr   uapi.MR
	info uapi.MRInfo
}

func newMemory(device *uapi.Device, c *Config) (m *memory, err error) {
	m = &memory{device: device}
	defer func() {
		if err != nil {
			_ = m.free()
		}
	}()
	if m.pd, err = device.CreatePD(); err != nil {
		return m, err
	}
	if m.cq, err = device.CreateCQ(c.entries()); err != nil {
		return m, err
	}
	if err = m.ring.make(m, c.Ring, uapi.AccessLocalWrite|uapi.AccessRemoteWrite); err != nil {
		return m, err
	}
	err = m.local.make(m, c.Ring+slot*(1+c.receives()), uapi.AccessLocalWrite)
	return m, err
}

func (r *region) make(m *memory, n int, access uapi.Access) (err error) {
	if r.mem, err = uapi.Alloc(n); err != nil {
		return err
	}
	if r.mr, err = m.device.RegMRWith(r.mem, uapi.MRConfig{Access: access, PD: m.pd}); err != nil {
		return err
	}
	r.info, err = m.device.QueryMR(r.mr)
	return err
}

// free gives everything back. Preconditions: the queue pair is destroyed.
func (m *memory) free() error {
	var all []error
	for _, r := range []*region{&m.ring, &m.local} {
		if r.mr > 0 {
			all = append(all, unlessClosed(m.device.DeregMR(r.mr)))
		}
	}
	if m.cq > 0 {
		all = append(all, unlessClosed(m.device.DestroyCQ(m.cq)))
	}
	if m.pd > 0 {
		all = append(all, unlessClosed(m.device.DestroyPD(m.pd)))
	}
	for _, r := range []*region{&m.ring, &m.local} {
		if r.mem != nil {
			all = append(all, uapi.Free(r.mem))
		}
	}
	return errors.Join(all...)
}

// outgoing is where a control message is put to be posted, as an offset of
// local; received is the slot of a receive.
func outgoing(staging int) int    { return staging }
func received(staging, i int) int { return staging + slot*(1+i) }
