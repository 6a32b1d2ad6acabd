package uapi

import (
	"net/netip"
	"slices"

	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Listen listens for connections to addr, HOST:PORT, on every device that this
// process has open and that has the address; an empty host is all of them, and
// 127.0.0.1 if all were opened to dial loopback addresses. If none has, the
// default device is opened, if it is not yet, as OpenLocal opens it, which
// RDMASHIM_DEVICE and its options hold for; of a name's addresses, on the first
// that has one; for an empty host on the device's own. A default device that
// is open and does not have the address stays, and Listen opens another beside
// it. Request.Device tells to which one a request came. See Device.Listen.
//
// A device that Listen opened stays open, with its address, when listener and
// connections have ended: it is the program's default device, whose handles go
// on. Close gives it back, and all else that the package functions opened.
func Listen(addr string, config ListenConfig) (*Listener, error) {
	at, err := resolveListen(addr)
	var l *Listener
	if err == nil {
		l, err = listenAt(at, config)
	}
	return l, opError("Listen", addr, err)
}

// listenAt listens on the first of the addresses that a device has.
func listenAt(addrs []netip.AddrPort, config ListenConfig) (*Listener, error) {
	for _, at := range addrs {
		devices := opened.at(at.Addr())
		if at.Addr().IsUnspecified() && len(devices) > 0 && !slices.ContainsFunc(devices, func(d *Device) bool { return !d.dials }) {
			if d, err := toListen(device.Loopbacks()[0]); err == nil {
				devices = append(devices, d)
			}
		}
		if len(devices) > 0 {
			return listen(at, devices, config)
		}
	}
	var failed []error
	for _, at := range addrs {
		d, err := toListen(at.Addr())
		if err == nil {
			var l *Listener
			if l, err = listen(at, []*Device{d}, config); err == nil {
				return l, nil
			}
		}
		failed = append(failed, err)
	}
	return nil, errs.Tried(failed)
}

// toListen returns the default device or, where its device does not have the
// address, another device that is closed with it.
func toListen(addr netip.Addr) (*Device, error) {
	if addr.IsUnspecified() {
		addr = netip.Addr{}
	}
	d, err := defaultDevice(func() (*Device, error) {
		d, err := openLocal(addr, OpenConfig{})
		if err != nil && !addr.IsValid() {
			return Open("", OpenConfig{})
		}
		return d, err
	})
	if err != nil || !addr.IsValid() || d.hasAddr(addr) {
		return d, err
	}
	if d, err = openLocal(addr, OpenConfig{}); err == nil {
		defaults.mu.Lock()
		defaults.more = append(defaults.more, d)
		defaults.mu.Unlock()
	}
	return d, err
}
