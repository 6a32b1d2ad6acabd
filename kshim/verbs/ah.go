package verbs

import (
	"fmt"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

// AHAttr is an address vector. IsGlobal and PortNum must be set for RoCE; DLID
// carries a soft device's UDP port, if SrcPathBits is abi.PathBitsUDP.
type AHAttr = abi.AHAttr

// AH is an address handle: where a datagram goes.
type AH struct {
	object
	num  uint32
	attr AHAttr
}

// CreateAH makes an address handle (IBA 11.2.2.1). EINVAL for a port that the
// device does not have, without a global route, or for a GID index beyond the
// port's table, ENODATA for an empty one. Linux resolves the link-layer address
// first, which may take as long as the network does, and fail as a route does.
func (pd *PD) CreateAH(attr AHAttr) (*AH, error) {
	c := pd.ctx
	ah := &AH{object: object{ctx: c}, attr: attr}
	err := pd.command("create AH", fmt.Sprintf("port %d", attr.PortNum), func() (err error) {
		ah.handle, ah.num, err = c.cmd.createAH(&abi.CreateAH{PDHandle: pd.handle, Attr: attr})
		if err == nil {
			enter(c, c.ahs, ah)
		}
		return err
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
func (ah *AH) Destroy() error { return ah.ctx.call("destroy AH", "", ah.destroy) }

func (ah *AH) destroy() error {
	c := ah.ctx
	return ah.free(func() error {
		return c.cmd.invoke(abi.CmdDestroyAH, &abi.DestroyAH{AHHandle: ah.handle}, nil, nil)
	}, func() { leave(c, c.ahs, ah) })
}
