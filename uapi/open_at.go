package uapi

import (
	"context"
	"net/netip"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// OpenLocal opens the device of an address of this machine, HOST or HOST:PORT,
// and never another one: the kernel's device that has the address, else the
// soft device on it. config.Kinds says which of the two it may be. Of a name's
// addresses the first is taken that has a device. An empty HOST is the address
// of the device that config.Device names, else 127.0.0.1.
//
// When another process of this user has a soft device on the address, the
// device is on the same address and a free UDP port, and is found there all the
// same (Linux): the owner of port 4791 redirects soft devices that ask it for a
// service of this process. RDMA cards and rdma_rxe are not: they get a
// *RejectError with reason PORT_CM_REDIRECT.
//
// A device that config.Device or RDMASHIM_DEVICE names is opened instead: a
// plain soft or sim is put on the address, with its options, and a device that
// does not have the address is EADDRNOTAVAIL.
//
// Errors, beside those of Open:
//   - EADDRNOTAVAIL: no device has the address; the error lists what there is
//   - EADDRINUSE: the address is taken; the error names the holder
func OpenLocal(addr string, config OpenConfig) (*Device, error) {
	list, err := resolveListen(withAnyPort(addr))
	if strings.HasPrefix(withAnyPort(addr), ":") {
		list = []netip.AddrPort{{}}
	}
	var failed []error
	for _, at := range list {
		var d *Device
		if d, err = openLocal(at.Addr(), config); err == nil {
			return d, nil
		}
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		err = errs.Tried(failed)
	}
	return nil, opError("OpenLocal", addr, err)
}

// openLocal is OpenLocal of an address; of none it is the device's own.
func openLocal(addr netip.Addr, config OpenConfig) (*Device, error) {
	if addr.IsUnspecified() || addr.IsMulticast() {
		return nil, errs.Explain(syscall.EINVAL, "%v is not an address of one interface", addr)
	}
	choose := config.chooser()
	name, label := orVariable(config.Device)
	if name == "" {
		return choose.At(addr)
	}
	spec, err := device.Parse(name)
	if err != nil {
		return nil, opError("Open", label, err)
	}
	return choose.Named(spec, name, label, addr)
}

// OpenRoute opens the device from which addr, HOST or HOST:PORT, is reached:
// the one that config.Device or RDMASHIM_DEVICE names; else the kernel's device
// that has the address from which the system's route to there leaves; else the
// soft device on that address. Of a name's addresses the first is taken to
// which there is a device, in the order in which Dial tries them. The error
// lists the attempts.
//
// To addresses of this host the device is one that leaves the address itself to
// programs that listen there: to 127.0.0.0/8 it is on 127.128.0.0 plus the
// number of the process, or one of the next addresses (Linux); to others it is
// on the same address and a free UDP port, from which soft devices are reached.
func OpenRoute(ctx context.Context, addr string, config OpenConfig) (*Device, error) {
	if name, _ := orVariable(config.Device); name != "" {
		return Open(config.Device, config)
	}
	remotes, err := resolve(ctx, withAnyPort(addr))
	var d *Device
	if err == nil {
		d, err = config.chooser().Toward(device.SilentLast(onThisHost(remotes, device.LoopbackListeners)))
	}
	return d, opError("OpenRoute", addr, err)
}
