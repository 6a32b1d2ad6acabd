package verbs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// PD is a protection domain: what its regions and queue pairs may do together.
type PD struct {
	ctx    *Context
	handle uint32
	gone   bool // guarded by ctx.mu

	// use is shared by commands that name the handle and exclusive in the one
	// that frees it: the kernel gives a freed handle to the next object.
	use sync.RWMutex
}

// AllocPD makes a protection domain.
func (c *Context) AllocPD() (*PD, error) {
	pd := &PD{ctx: c}
	err := c.call("allocate PD", c.info.Name, func() (err error) {
		if pd.handle, err = c.cmd.allocPD(); err != nil {
			return err
		}
		c.mu.Lock()
		c.pds[pd] = struct{}{}
		c.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pd, nil
}

// Dealloc frees the domain. EBUSY while regions or queue pairs use it, EBADF
// when it was freed before.
func (pd *PD) Dealloc() error {
	return pd.ctx.call("deallocate PD", "", func() error {
		pd.use.Lock()
		defer pd.use.Unlock()
		if pd.dead() {
			return errDestroyed
		}
		return pd.dealloc()
	})
}

func (pd *PD) dealloc() error {
	if err := pd.ctx.cmd.deallocPD(pd.handle); err != nil {
		return err
	}
	pd.ctx.mu.Lock()
	defer pd.ctx.mu.Unlock()
	pd.gone = true
	delete(pd.ctx.pds, pd)
	return nil
}

func (pd *PD) dead() bool {
	pd.ctx.mu.Lock()
	defer pd.ctx.mu.Unlock()
	return pd.gone
}

// MR is a registered memory region. It holds its memory, pinned, until it is
// deregistered or the context closed; a region that is merely dropped stays
// registered, because the device may still be writing to it.
type MR struct {
	ctx     *Context
	handle  uint32
	state   atomic.Pointer[mrState]
	release func() // of the memory; changed under use
	gone    bool   // guarded by ctx.mu

	// use is exclusive in commands that name the handle, of which one frees it.
	use sync.Mutex
}

// mrState is what Rereg may change; it is replaced as a whole.
type mrState struct {
	addr, length uint64
	lkey, rkey   uint32
	access       abi.AccessFlags
}

// RegMR registers buf. A nil or empty buf is EINVAL, as is remote writing or
// remote atomics without local writing; memory that is not there, or not
// writable although writing is allowed, is EFAULT; more than RLIMIT_MEMLOCK is
// ENOMEM.
func (pd *PD) RegMR(buf []byte, access abi.AccessFlags) (*MR, error) {
	c := pd.ctx
	mr := &MR{ctx: c}
	s := &mrState{length: uint64(len(buf)), access: access}
	err := c.call("register MR", fmt.Sprintf("%d bytes for %v", len(buf), access), func() error {
		if len(buf) == 0 {
			return errEmpty
		}
		pd.use.RLock()
		defer pd.use.RUnlock()
		if pd.dead() {
			return errDestroyed
		}
		s.addr, mr.release = c.cmd.file.Pin(buf)
		resp, err := c.cmd.regMR(&abi.RegMR{
			Start: s.addr, Length: s.length, HCAVA: s.addr, PDHandle: pd.handle, AccessFlags: access,
		})
		if err != nil {
			mr.release()
			if errors.Is(err, syscall.ENOMEM) {
				err = fmt.Errorf("%w (the device has no room for another region, or it is more memory than this process may lock: RLIMIT_MEMLOCK, ulimit -l)", err)
			}
			return err
		}
		mr.handle, s.lkey, s.rkey = resp.MRHandle, resp.LKey, resp.RKey
		mr.state.Store(s)
		c.mu.Lock()
		c.mrs[mr] = struct{}{}
		c.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mr, nil
}

// Addr is the address of the region's first byte, for local and remote use.
func (mr *MR) Addr() uint64 { return mr.state.Load().addr }

// Length is the region's length in bytes.
func (mr *MR) Length() uint64 { return mr.state.Load().length }

// LKey is the key for scatter/gather lists.
func (mr *MR) LKey() uint32 { return mr.state.Load().lkey }

// RKey is the key that a peer needs.
func (mr *MR) RKey() uint32 { return mr.state.Load().rkey }

// Access is what the region permits.
func (mr *MR) Access() abi.AccessFlags { return mr.state.Load().access }

// Dereg takes the keys away and lets go of the memory: afterwards the device no
// longer touches it. EBADF the second time. On any other error the region stays
// registered and its memory held.
func (mr *MR) Dereg() error {
	return mr.ctx.call("deregister MR", fmt.Sprintf("key %#x", mr.RKey()), func() error {
		mr.use.Lock()
		defer mr.use.Unlock()
		if mr.dead() {
			return errDestroyed
		}
		return mr.dereg()
	})
}

func (mr *MR) dead() bool {
	mr.ctx.mu.Lock()
	defer mr.ctx.mu.Unlock()
	return mr.gone
}

func (mr *MR) dereg() error {
	if err := mr.ctx.cmd.deregMR(mr.handle); err != nil {
		return err
	}
	mr.drop()
	return nil
}

func (mr *MR) drop() {
	mr.ctx.mu.Lock()
	mr.gone = true
	delete(mr.ctx.mrs, mr)
	mr.ctx.mu.Unlock()
	mr.release()
}
