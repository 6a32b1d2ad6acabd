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
	kits   *kits // the device's
	kit
	ring region // the peer writes it
}

type region struct {
	mem  []byte
	mr   uapi.MR
	info uapi.MRInfo
}

func newMemory(device *uapi.Device, c *Config) (m *memory, err error) {
	m = &memory{device: device}
	facts, err := factsOf(device)
	if err != nil {
		return nil, err
	}
	m.kits = facts.kits
	if m.kit, err = m.kits.take(device, c); err == nil {
		err = m.ring.make(device, m.pd, c.Ring, uapi.AccessLocalWrite|uapi.AccessRemoteWrite)
	}
	if err != nil {
		_ = m.free()
	}
	return m, err
}

func (r *region) make(device *uapi.Device, pd uapi.PD, n int, access uapi.Access) (err error) {
	if r.mem, err = uapi.Alloc(n); err != nil {
		return err
	}
	if r.mr, err = device.RegMRWith(r.mem, uapi.MRConfig{Access: access, PD: pd}); err != nil {
		return err
	}
	r.info, err = device.QueryMR(r.mr)
	return err
}

// free gives a region back. Preconditions: the queue pair is destroyed.
func (r *region) free(device *uapi.Device) (err error) {
	if r.mr > 0 {
		err = unlessClosed(device.DeregMR(r.mr))
	}
	if r.mem != nil {
		err = errors.Join(err, uapi.Free(r.mem))
	}
	return err
}

// free gives everything back. Preconditions: the queue pair is destroyed.
func (m *memory) free() error {
	return errors.Join(m.ring.free(m.device), m.kit.free(m.device), m.kits.left(m.device, nil))
}

// leave gives the ring back, and the kit, of whose staging so many bytes were
// used, to the next connection of the device. Preconditions: the queue pair was
// destroyed by this end, and no region of the program's is left.
func (m *memory) leave(used uint64) error {
	if !m.reset(m.device, used) {
		return m.free()
	}
	return errors.Join(m.ring.free(m.device), m.kits.left(m.device, &m.kit))
}

// outgoing is where a control message is put to be posted, as an offset of
// local; received is the slot of a receive.
func outgoing(staging int) int    { return staging }
func received(staging, i int) int { return staging + slot*(1+i) }
