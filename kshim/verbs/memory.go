package verbs

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// PD is a protection domain: its queue pairs reach its regions and no others.
type PD struct{ object }

// AllocPD makes a protection domain.
func (c *Context) AllocPD() (*PD, error) {
	pd := &PD{object{ctx: c}}
	err := c.call("allocate PD", c.info.Name, func() error {
		var resp abi.AllocPDResp
		if err := c.cmd.invoke(abi.CmdAllocPD, &abi.AllocPD{}, &resp, nil); err != nil {
			return err
		}
		pd.handle = resp.PDHandle
		enter(c, c.pds, pd)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return pd, nil
}

// Dealloc frees the domain. EBUSY while regions or queue pairs use it, EBADF
// when it was freed before.
func (pd *PD) Dealloc() error { return pd.ctx.call("deallocate PD", "", pd.dealloc) }

func (pd *PD) dealloc() error {
	c := pd.ctx
	return pd.free(func() error {
		return c.cmd.invoke(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd.handle}, nil, nil)
	}, func() { leave(c, c.pds, pd) })
}

// MR is a registered memory region. It holds its memory, pinned, until it is
// deregistered or the context closed; a region that is merely dropped stays
// registered, because the device may still be writing to it.
type MR struct {
	object  // use is exclusive in Rereg, too
	state   atomic.Pointer[mrState]
	release func() // of the memory; guarded by use
}

// mrState holds the fields that Rereg may change; it is replaced as a whole.
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
	mr := &MR{object: object{ctx: c}}
	s := &mrState{length: uint64(len(buf)), access: access}
	err := pd.command("register MR", fmt.Sprintf("%d bytes for %v", len(buf), access), func() error {
		if len(buf) == 0 {
			return errEmpty
		}
		s.addr, mr.release = c.cmd.file.Pin(buf)
		var resp abi.RegMRResp
		err := c.cmd.invoke(abi.CmdRegMR, &abi.RegMR{
			Start: s.addr, Length: s.length, HCAVA: s.addr, PDHandle: pd.handle, AccessFlags: access,
		}, &resp, nil)
		if err != nil {
			mr.release()
			if errors.Is(err, syscall.ENOMEM) {
				err = fmt.Errorf("%w (the device has no room for another region, or it is more memory than this process may lock: RLIMIT_MEMLOCK, ulimit -l)", err)
			}
			return err
		}
		mr.handle, s.lkey, s.rkey = resp.MRHandle, resp.LKey, resp.RKey
		mr.state.Store(s)
		enter(c, c.mrs, mr)
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

// Access returns the set of operations that the region permits.
func (mr *MR) Access() abi.AccessFlags { return mr.state.Load().access }

// Dereg takes the keys away and lets go of the memory: afterwards the device no
// longer touches it. EBADF the second time. On any other error the region stays
// registered and its memory held.
func (mr *MR) Dereg() error {
	return mr.ctx.call("deregister MR", fmt.Sprintf("key %#x", mr.RKey()), mr.dereg)
}

func (mr *MR) dereg() error {
	return mr.free(func() error {
		return mr.ctx.cmd.invoke(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr.handle}, nil, nil)
	}, mr.drop)
}

// drop lets go of the client's memory.
func (mr *MR) drop() {
	leave(mr.ctx, mr.ctx.mrs, mr)
	mr.release()
}
