package verbs

import (
	"fmt"
	"sync"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// AHAttr is an address vector. IsGlobal and PortNum must be set for RoCE; DLID
// carries a soft device's UDP port (0: 4791).
type AHAttr = abi.AHAttr

// AH is an address handle: where a datagram goes.
type AH struct {
	ctx    *Context
	handle uint32
	num    uint32
	attr   AHAttr
	gone   bool // guarded by ctx.mu

	// use is shared by commands that name the handle and exclusive in the one
	// that frees it, as PD.use.
	use sync.RWMutex
}

// CreateAH makes an address handle (IBA 11.2.2.1). EINVAL for a port that the
// device does not have, without a global route, or for a GID index beyond the
// port's table, ENODATA for an empty one. Linux resolves the link-layer address
// first, which may take as long as the network does, and fail as a route does.
func (pd *PD) CreateAH(attr AHAttr) (*AH, error) {
	c := pd.ctx
	ah := &AH{ctx: c, attr: attr}
	err := c.call("create AH", fmt.Sprintf("port %d", attr.PortNum), func() (err error) {
		pd.use.RLock()
		defer pd.use.RUnlock()
		if pd.dead() {
			return errDestroyed
		}
		ah.handle, ah.num, err = c.prov.createAH(c.cmd, &abi.CreateAH{PDHandle: pd.handle, Attr: attr})
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.ahs[ah] = struct{}{}
		c.mu.Unlock()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ah, nil
}

// Num is the number by which a work request names the handle; never 0.
func (ah *AH) Num() uint32 { return ah.num }

// Attr is the address vector.
func (ah *AH) Attr() AHAttr { return ah.attr }

// Destroy frees the handle. EBADF the second time.
func (ah *AH) Destroy() error {
	return ah.ctx.call("destroy AH", "", func() error {
		ah.use.Lock()
		defer ah.use.Unlock()
		return ah.destroy()
	})
}

func (ah *AH) destroy() error {
	c := ah.ctx
	c.mu.Lock()
	gone := ah.gone
	c.mu.Unlock()
	if gone {
		return errDestroyed
	}
	if err := c.cmd.destroyAH(ah.handle); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ah.gone = true
	delete(c.ahs, ah)
	return nil
}
