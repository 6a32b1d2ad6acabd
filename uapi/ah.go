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
	device *Device
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
// ENETUNREACH and EADDRNOTAVAIL as for ConnectQP; EBADF for a bad protection
// domain; ENOMEM when the device has no room. A kernel device resolves the
// link-layer address meanwhile and fails where there is none.
func (d *Device) CreateAH(remote netip.AddrPort, config AHConfig) (AH, error) {
	ah, err := d.createAH(remote, config)
	return ah, opError("CreateAH", "", err)
}

// AHConfig says how to make an address handle. The zero value of every field
// means the default in parentheses.
type AHConfig struct {
	// PD is the protection domain (the device's own): the handle serves queue
	// pairs in it only.
	PD PD
}

func (d *Device) createAH(remote netip.AddrPort, config AHConfig) (AH, error) {
	addr, port := remote.Addr().Unmap(), remote.Port()
	if port == 0 {
		port = RoCEPort
	}
	switch {
	case d.closed.Load():
		return -1, errDeviceClosed
	case !addr.IsValid() || addr.IsUnspecified():
		return -1, errs.Explain(syscall.EINVAL, "%v is not the address of a device", remote.Addr())
	}
	pd, err := d.domain(config.PD)
	if err == nil {
		err = d.reaches(addr, port)
	}
	if err != nil {
		return -1, err
	}
	attr := verbs.AHAttr{
		DGID: addr.As16(), SGIDIndex: uint8(d.chosen.gid.Index), HopLimit: 64, IsGlobal: 1, PortNum: uint8(d.chosen.port),
	}
	if port != RoCEPort {
		attr.DLID, attr.SrcPathBits = port, abi.PathBitsUDP
	}
	v, err := pd.CreateAH(attr)
	if err != nil {
		return -1, d.ended(err, &d.closed, "")
	}
	a := &addressHandle{device: d, pd: config.PD, verbs: v, made: caller()}
	return enter(d, &addressHandles, &d.addresses, a, &a.handle, v.Destroy)
}

// reaches refuses an address that the device cannot send to.
func (d *Device) reaches(addr netip.Addr, port uint16) error {
	reaches := func(addr netip.Addr) error { return reachable(d.chosen.addr.Addr(), addr) }
	if addr.IsMulticast() {
		reaches = d.isGroup
	}
	if err := reaches(addr); err != nil {
		return err
	}
	if d.where.Spec.Kind == device.Host && port != RoCEPort {
		return errs.Explain(syscall.EADDRNOTAVAIL, "the peer is at UDP port %d, and a device of the kernel sends to %d only; open the soft device on that port", port, RoCEPort)
	}
	return nil
}

// DestroyAH destroys an address handle.
func (d *Device) DestroyAH(ah AH) error { return opError("DestroyAH", ahName(ah), d.destroyAH(ah)) }

func (d *Device) destroyAH(ah AH) error {
	a, err := d.address(ah)
	if err != nil {
		return err
	}
	if !leave(d, &addressHandles, &d.addresses, ah) { // another goroutine was faster
		_, err = d.address(ah)
		return err
	}
	return d.ended(a.verbs.Destroy(), &d.closed, "")
}

// address is the address handle behind a handle, or EBADF.
func (d *Device) address(ah AH) (*addressHandle, error) {
	if a := addressHandles.Get(int(ah)); a != nil && a.device == d {
		return a, nil
	}
	return nil, d.badHandle("%s is no address handle of this device: zero, destroyed, or another device's", ahName(ah))
}
