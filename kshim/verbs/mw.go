package verbs

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// MW is a memory window: a remote key for a part of a region, which a BIND_MW
// gives and, for windows of type 2, a LOCAL_INV or the peer's SEND_WITH_INV
// revokes (IBA 10.6.7).
type MW struct {
	object
	rkey uint32
}

// AllocMW makes a window of type 1 or 2, which gives access to nothing. EINVAL
// for other types, EOPNOTSUPP from a device without windows.
func (pd *PD) AllocMW(typ uint8) (*MW, error) {
	c := pd.ctx
	mw := &MW{object: object{ctx: c}}
	err := pd.command("allocate MW", fmt.Sprintf("type %d", typ), func() error {
		var resp abi.AllocMWResp
		if err := c.cmd.invoke(abi.CmdAllocMW, &abi.AllocMW{PDHandle: pd.handle, MWType: typ}, &resp, nil); err != nil {
			return err
		}
		mw.handle, mw.rkey = resp.MWHandle, resp.RKey
		enter(c, c.mws, mw)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return mw, nil
}

// RKey is the key with which the window was made. Each BIND_MW gives it another
// one: the caller chooses its lowest 8 bits (BindMW.RKey), the others stay.
func (mw *MW) RKey() uint32 { return mw.rkey }

// Dealloc frees the window, bound or not. EBADF the second time.
func (mw *MW) Dealloc() error { return mw.ctx.call("deallocate MW", "", mw.dealloc) }

func (mw *MW) dealloc() error {
	c := mw.ctx
	return mw.free(func() error {
		return c.cmd.invoke(abi.CmdDeallocMW, &abi.DeallocMW{MWHandle: mw.handle}, nil, nil)
	}, func() { leave(c, c.mws, mw) })
}
