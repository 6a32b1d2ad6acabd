package verbs

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// Rereg holds the changes for MR.Rereg. Only the fields that Flags names count.
type Rereg struct {
	Flags  abi.ReregFlags
	Buf    []byte          // abi.ReregTranslation
	PD     *PD             // abi.ReregPD
	Access abi.AccessFlags // abi.ReregAccess
}

// Rereg changes a region: its memory, its protection domain, its rights (IBA
// 11.2.8.6). The keys may change. On an error nothing has changed, and the old
// memory stays registered. EOPNOTSUPP where the driver cannot: rdma_rxe of
// Linux 6.1 nothing of it, later ones not the memory. EINVAL without a flag,
// for an empty Buf, or for a PD of another context; otherwise the errors of
// RegMR. Nothing that uses the region should be outstanding.
func (mr *MR) Rereg(r Rereg) error {
	c := mr.ctx
	return c.call("reregister MR", fmt.Sprintf("key %#x, %v", mr.RKey(), r.Flags), func() error {
		req := abi.ReregMR{Flags: r.Flags}
		if r.Flags&abi.ReregPD != 0 {
			if r.PD == nil || r.PD.ctx != c {
				return errForeign
			}
			r.PD.use.RLock()
			defer r.PD.use.RUnlock()
			if r.PD.gone {
				return errDestroyed
			}
			req.PDHandle = r.PD.handle
		}
		mr.use.Lock()
		defer mr.use.Unlock()
		if mr.gone {
			return errDestroyed
		}
		next, release := *mr.state.Load(), func() {}
		if r.Flags&abi.ReregTranslation != 0 {
			if len(r.Buf) == 0 {
				return errEmpty
			}
			next.addr, release = c.cmd.file.Pin(r.Buf)
			next.length = uint64(len(r.Buf))
			req.Start, req.Length, req.HCAVA = next.addr, next.length, next.addr
		}
		if r.Flags&abi.ReregAccess != 0 {
			next.access, req.AccessFlags = r.Access, r.Access
		}
		req.MRHandle = mr.handle
		var resp abi.ReregMRResp
		if err := c.cmd.invoke(abi.CmdReregMR, &req, &resp, nil); err != nil {
			release()
			return err
		}
		next.lkey, next.rkey = resp.LKey, resp.RKey
		if r.Flags&abi.ReregTranslation != 0 {
			mr.release()
			mr.release = release
		}
		mr.state.Store(&next)
		return nil
	})
}
