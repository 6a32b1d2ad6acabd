package simple

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// region is registered memory: bytes, and the address that clients know them
// by.
type region struct {
	d      *Device
	key    uint32
	mem    []byte
	iova   uint64
	access abi.AccessFlags
}

// RegMR implements driver.Device. Far memory is EOPNOTSUPP: operations get
// bytes.
func (d *Device) RegMR(_ driver.PD, mem driver.Memory, iova uint64, access abi.AccessFlags) (driver.MR, error) {
	if mem.Far != nil {
		return nil, syscall.EOPNOTSUPP
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastKey++
	r := &region{d, d.lastKey, mem.Bytes, iova, access}
	d.regions[r.key] = r
	return r, nil
}

func (r *region) LKey() uint32              { return r.key }
func (r *region) RKey() uint32              { return r.key }
func (r *region) Rereg(*driver.Rereg) error { return syscall.EOPNOTSUPP }

func (r *region) Dereg() error {
	r.d.mu.Lock()
	defer r.d.mu.Unlock()
	delete(r.d.regions, r.key)
	return nil
}

// Local returns the memory that a piece of a work request names, nil if it is
// not all in its region.
func (d *Device) Local(s ring.SGE) []byte {
	return d.bytes(s.LKey, s.Addr, uint64(s.Length), 0)
}

// Remote returns n bytes at a remote address, nil if they are not all in the
// region of the key, or if that does not allow the access.
func (d *Device) Remote(rkey uint32, addr, n uint64, access abi.AccessFlags) []byte {
	return d.bytes(rkey, addr, n, access)
}

func (d *Device) bytes(key uint32, addr, n uint64, access abi.AccessFlags) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.regions[key]
	if r == nil || r.access&access != access {
		return nil
	}
	at := addr - r.iova
	if at > uint64(len(r.mem)) || n > uint64(len(r.mem))-at {
		return nil
	}
	return r.mem[at : at+n]
}
