package uapi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// deviceKinds are the kinds of devices that may be opened; none means all.
type deviceKinds []string

func (k deviceKinds) has(kind deviceKind) bool {
	return len(k) == 0 || slices.Contains(k, string(kind))
}

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
func OpenLocal(addr string, config OpenConfig) (*Context, error) {
	ctx, cancel := context.WithTimeout(context.Background(), DefaultConnectTimeout)
	defer cancel()
	list, err := resolve(ctx, withAnyPort(addr))
	if strings.HasPrefix(withAnyPort(addr), ":") {
		list = []netip.AddrPort{{}}
	}
	var failed []error
	for _, at := range list {
		var c *Context
		if c, err = openLocal(at.Addr(), config); err == nil {
			return c, nil
		}
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		err = errs.Tried(failed)
	}
	return nil, opError("OpenLocal", addr, err)
}

// openLocal is OpenLocal of an address; of none it is the device's own.
func openLocal(addr netip.Addr, config OpenConfig) (*Context, error) {
	if addr.IsUnspecified() || addr.IsMulticast() {
		return nil, errs.Explain(syscall.EINVAL, "%v is not an address of one interface", addr)
	}
	kinds := deviceKinds(config.Kinds)
	if name, said := orVariable(config.Device); name != "" {
		return openNamedAt(name, said, addr, config)
	}
	if !addr.IsValid() {
		addr = loopbacks()[0]
	}
	c, failed := openHostAt(addr, config)
	if c != nil {
		return c, nil
	}
	if kinds.has(kindSoft) {
		c, err := openSoftAt(softAt(addr), config)
		if err == nil {
			return c, nil
		}
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			err = noDevice(addr, kinds)
		}
		failed = append(failed, err)
	}
	if len(failed) == 0 {
		failed = append(failed, noDevice(addr, kinds))
	}
	return nil, errs.Tried(failed)
}

// openNamedAt opens the device that was named, which errors call said, if it
// has the address.
func openNamedAt(name, said string, addr netip.Addr, config OpenConfig) (*Context, error) {
	kinds := deviceKinds(config.Kinds)
	spec, err := parseDevice(name)
	switch {
	case err != nil:
		return nil, opError("Open", said, err)
	case !kinds.has(spec.kind):
		return nil, errs.Explain(syscall.EINVAL, "%s is of kind %s, and %s was asked for", said, spec.kind, strings.Join(kinds, " or "))
	case spec.kind == kindHost && addr.IsValid():
		switch c, failed := openHostAt(addr, config, spec.host); {
		case c != nil:
			return c, nil
		case len(failed) > 0:
			return nil, errs.Tried(failed)
		}
		return nil, errs.Explain(syscall.EADDRNOTAVAIL, "%s does not have the address %v", said, addr)
	case spec.addr.IsValid() && addr.IsValid() && spec.addr != addr:
		return nil, errs.Explain(syscall.EADDRNOTAVAIL, "%s is on %v, not %v", said, spec.addr, addr)
	case !spec.addr.IsValid():
		spec.addr = addr
	}
	if spec.kind != kindSoft {
		c, err := openSpec(spec, config)
		return c, opError("Open", said, err)
	}
	if !spec.addr.IsValid() {
		spec.addr = loopbacks()[0]
	}
	c, err := openSoftAt(spec, config)
	if err != nil && said != name {
		err = fmt.Errorf("%s: %w", said, err)
	}
	return c, err
}

// openHostAt opens the kernel's device that has an address, of the named ones
// if any are named. It returns nil without an error when no device has it.
func openHostAt(addr netip.Addr, config OpenConfig, named ...string) (*Context, []error) {
	var failed []error
	if runtime.GOOS != "linux" || !deviceKinds(config.Kinds).has(kindHost) {
		return nil, nil
	}
	for _, d := range hostDevices("/sys/class/infiniband") {
		i := slices.IndexFunc(d.GIDs, func(g GID) bool { return g.Type == gidV2 && g.Addr == addr.WithZone("") })
		if i < 0 || len(named) > 0 && !slices.Contains(named, d.Name) {
			continue
		}
		config.GIDIndex = &d.GIDs[i].Index
		c, err := OpenWith(d.Device, config)
		if err == nil {
			return c, nil
		}
		failed = append(failed, err)
	}
	return nil, failed
}

// openSoftAt opens the soft device on an address, beside that of another
// process that lets it.
func openSoftAt(spec deviceSpec, config OpenConfig) (*Context, error) {
	for tries := 0; ; tries++ {
		c, err := openSpec(spec, config)
		if err = opError("Open", softName(spec.addr), err); !errors.Is(err, syscall.EADDRINUSE) || spec.udpPort() != RoCEPort {
			return c, err
		}
		if canShare(spec.addr) {
			return openBeside(spec, config)
		}
		if tries > 0 { // an owner may have been ending
			return nil, err
		}
	}
}

// noDevice is the error that no device has an address; it lists the addresses
// that there are.
func noDevice(addr netip.Addr, kinds deviceKinds) error {
	var there []string
	list, _ := Devices()
	for _, d := range list {
		if !kinds.has(deviceKind(d.Kind)) || d.Kind == string(kindSim) {
			continue
		}
		var addrs []string
		for _, g := range d.GIDs {
			if a := g.Addr.String(); g.Type == gidV2 && !slices.Contains(addrs, a) {
				addrs = append(addrs, a)
			}
		}
		if d.Kind == string(kindHost) {
			there = append(there, fmt.Sprintf("%s (%s)", d.Device, strings.Join(addrs, " ")))
		} else {
			there = append(there, d.Device)
		}
	}
	if len(there) == 0 {
		return errs.Explain(syscall.EADDRNOTAVAIL, "no device has the address %v; there is none of kind %s", addr, strings.Join(kinds, " or "))
	}
	return errs.Explain(syscall.EADDRNOTAVAIL, "no device has the address %v; there are %s", addr, strings.Join(there, ", "))
}
