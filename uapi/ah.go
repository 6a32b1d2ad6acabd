package uapi

import (
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// addressHandle is an address handle.
type addressHandle struct {
	ctx    *Context
	handle AH
	pd     PD
	verbs  *verbs.AH
	made   origin
}

// CreateAH makes an address handle: the path from this device's port to the
// device at remote, or to a multicast group (AttachMulticast), for datagrams.
// Port 0 means RoCEPort.
//
// Errors: EINVAL for an address that is not one device's; EAFNOSUPPORT,
// ENETUNREACH and EADDRNOTAVAIL as for ConnectQP; ENOMEM when the device has no
// room. A kernel device resolves the link-layer address meanwhile and fails
// where there is none.
func (c *Context) CreateAH(remote netip.AddrPort) (AH, error) {
	ah, err := c.createAH(remote, AHConfig{})
	return ah, opError("CreateAH", "", err)
}

// AHConfig says how to make an address handle. The zero value of every field
// means the default in parentheses.
type AHConfig struct {
	// PD is the protection domain (the context's own): the handle serves queue
	// pairs in it only.
	PD PD
}

// CreateAHWith is CreateAH as configured. Errors are those of CreateAH, and
// EBADF for a bad protection domain.
func (c *Context) CreateAHWith(remote netip.AddrPort, config AHConfig) (AH, error) {
	ah, err := c.createAH(remote, config)
	return ah, opError("CreateAHWith", "", err)
}

func (c *Context) createAH(remote netip.AddrPort, config AHConfig) (AH, error) {
	addr, port := remote.Addr().Unmap(), remote.Port()
	if port == 0 {
		port = RoCEPort
	}
	switch {
	case c.closed.Load():
		return -1, errContextClosed
	case !addr.IsValid() || addr.IsUnspecified():
		return -1, errs.Explain(syscall.EINVAL, "%v is not the address of a device", remote.Addr())
	}
	pd, err := c.domain(config.PD)
	if err == nil {
		err = c.reaches(addr, port)
	}
	if err != nil {
		return -1, err
	}
	attr := verbs.AHAttr{
		DGID: addr.As16(), SGIDIndex: uint8(c.chosen.gid.Index), HopLimit: 64, IsGlobal: 1, PortNum: uint8(c.chosen.port),
	}
	if port != RoCEPort {
		attr.DLID, attr.SrcPathBits = port, abi.PathBitsUDP
	}
	v, err := pd.CreateAH(attr)
	if err != nil {
		return -1, c.ended(err, &c.closed, "")
	}
	a := &addressHandle{ctx: c, pd: config.PD, verbs: v, made: caller()}
	if err := enter(c, &addressHandles, &c.addresses, a, &a.handle, v.Destroy); err != nil {
		return -1, err
	}
	return a.handle, nil
}

// reaches refuses an address that the device cannot send to.
func (c *Context) reaches(addr netip.Addr, port uint16) error {
	reaches := func(addr netip.Addr) error { return reachable(c.chosen.addr.Addr(), addr) }
	if addr.IsMulticast() {
		reaches = c.isGroup
	}
	if err := reaches(addr); err != nil {
		return err
	}
	if c.device.Spec.Kind == device.Host && port != RoCEPort {
		return errs.Explain(syscall.EADDRNOTAVAIL, "the peer is at UDP port %d, and a device of the kernel sends to %d only; open the soft device on that port", port, RoCEPort)
	}
	return nil
}

// DestroyAH destroys an address handle.
func (c *Context) DestroyAH(ah AH) error { return opError("DestroyAH", ahName(ah), c.destroyAH(ah)) }

func (c *Context) destroyAH(ah AH) error {
	a, err := c.address(ah)
	if err != nil {
		return err
	}
	if !leave(c, &addressHandles, &c.addresses, ah) { // another goroutine was faster
		_, err = c.address(ah)
		return err
	}
	return c.ended(a.verbs.Destroy(), &c.closed, "")
}

// address is the address handle behind a handle, or EBADF.
func (c *Context) address(ah AH) (*addressHandle, error) {
	if a := addressHandles.Get(int(ah)); a != nil && a.ctx == c {
		return a, nil
	}
	return nil, c.badHandle("%s is no address handle of this context: zero, destroyed, or another context's", ahName(ah))
}
