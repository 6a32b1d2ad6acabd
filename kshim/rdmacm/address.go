package rdmacm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// DefaultResolveTimeout is how long each of the two resolutions may take when
// nothing else is said.
const DefaultResolveTimeout = 5 * time.Second

// Options of an id. The zero value leaves everything to the kernel.
type Options struct {
	TOS     uint8         // type of service of the connection's packets (IPv4), or traffic class; 0 for the kernel's default
	Timeout time.Duration // of each resolution; 0 means DefaultResolveTimeout
}

// apply sets the options that differ from the kernel's defaults.
func (id *ID) apply(o *Options) error {
	if o.TOS == 0 {
		return nil
	}
	return id.call("set option of", func() error {
		return id.ch.setOption(id.num, abi.UCMOptionTOS, []byte{o.TOS})
	})
}

// Resolve makes an id on the way to remote: it resolves the address, which
// chooses the device, and the route. An invalid local leaves the source to the
// route. ENETUNREACH without a route, ENODEV or ETIMEDOUT when no RDMA device
// or no host is there. The caller destroys the id; when Resolve fails there is
// none.
func (c *Channel) Resolve(ctx context.Context, local, remote netip.AddrPort, o Options) (*ID, error) {
	id, err := c.NewID()
	if err != nil {
		return nil, err
	}
	if err = id.apply(&o); err == nil {
		err = id.ResolveAddr(ctx, local, remote, o.Timeout)
	}
	if err == nil {
		err = id.ResolveRoute(ctx, o.Timeout)
	}
	if err != nil {
		_ = id.Destroy()
		return nil, err
	}
	return id, nil
}

// sockaddr encodes an address; zones that are names become numbers.
func sockaddr(a netip.AddrPort) (s abi.SockaddrStorage, size uint16, err error) {
	if zone := a.Addr().Zone(); zone != "" {
		if _, err := strconv.ParseUint(zone, 10, 32); err != nil {
			dev, err := net.InterfaceByName(zone)
			if err != nil {
				return s, 0, fmt.Errorf("zone of %v: %w", a, err)
			}
			a = netip.AddrPortFrom(a.Addr().WithZone(strconv.Itoa(dev.Index)), a.Port())
		}
	}
	size, err = s.Set(a)
	if err != nil {
		err = fmt.Errorf("address %v: %w", a, err)
	}
	return s, size, err
}

// milliseconds of a timeout; it does not outlast ctx.
func milliseconds(ctx context.Context, timeout time.Duration) uint32 {
	if timeout <= 0 {
		timeout = DefaultResolveTimeout
	}
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end))
	}
	return uint32(min(max(timeout.Milliseconds(), 1), 1<<31-1))
}

// Bind binds the id to an address of this host; port 0 chooses one. EADDRINUSE,
// EADDRNOTAVAIL, ENODEV when no RDMA device has the address.
func (id *ID) Bind(local netip.AddrPort) error {
	return id.call("bind", func() error {
		addr, size, err := sockaddr(local)
		if err != nil {
			return err
		}
		req := abi.UCMBind{ID: id.num, AddrSize: size, Addr: addr}
		return id.ch.command(abi.UCMCmdBind, &req)
	})
}

// ResolveAddr resolves the peer's address, binds the id to the device on the
// way there and waits for it. When ctx ends the resolution goes on: destroy the
// id.
func (id *ID) ResolveAddr(ctx context.Context, local, remote netip.AddrPort, timeout time.Duration) error {
	const op = "resolve address"
	id.mu.Lock()
	id.remote = remote
	id.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return &Error{op, id.name(), err}
	}
	return id.step(ctx, op, abi.UCMEventAddrResolved, func() (err error) {
		req := abi.UCMResolveAddr{ID: id.num, TimeoutMS: milliseconds(ctx, timeout)}
		if local.IsValid() {
			if req.SrcAddr, req.SrcSize, err = sockaddr(local); err != nil {
				return err
			}
		}
		if req.DstAddr, req.DstSize, err = sockaddr(remote); err != nil {
			return err
		}
		return id.ch.command(abi.UCMCmdResolveAddr, &req)
	})
}

// ResolveRoute resolves the route to the peer and waits for it. When ctx ends
// the resolution goes on: destroy the id.
func (id *ID) ResolveRoute(ctx context.Context, timeout time.Duration) error {
	return id.step(ctx, "resolve route to", abi.UCMEventRouteResolved, func() error {
		req := abi.UCMResolveRoute{ID: id.num, TimeoutMS: milliseconds(ctx, timeout)}
		return id.ch.command(abi.UCMCmdResolveRoute, &req)
	})
}

// step runs a command on the id and waits for the event that it ends with.
func (id *ID) step(ctx context.Context, op string, want abi.UCMEvent, f func() error) error {
	err := id.call(op, f)
	if err == nil {
		_, err = id.await(ctx, op, want)
	}
	return err
}

// Route is the kernel's knowledge of an id's route.
type Route struct {
	Local, Remote netip.AddrPort // invalid while there is none
	NodeGUID      uint64         // of the device; 0 while there is none, as for a listener on a wildcard address
	Port          uint8          // of the device
}

// Route asks for the addresses and the device of the id.
func (id *ID) Route() (r Route, err error) {
	err = id.call("query", func() error {
		req := abi.UCMQuery{ID: id.num, Option: abi.UCMQueryAddr}
		var resp abi.UCMQueryAddrResp
		if err := id.ch.do(&request{abi.UCMCmdQuery, &req, &req.Response, &resp}); err != nil {
			return err
		}
		r = Route{NodeGUID: resp.NodeGUID, Port: resp.PortNum}
		// An address of no family is none.
		r.Local, _ = resp.SrcAddr.AddrPort()
		r.Remote, _ = resp.DstAddr.AddrPort()
		id.mu.Lock()
		if !id.remote.IsValid() {
			id.remote = r.Remote
		}
		id.mu.Unlock()
		return nil
	})
	return r, err
}

// Device is the name of the device that the id was bound to by its address,
// which is the one to open for its queue pair. ENODEV while it has none; the
// error names the places that were looked at.
func (id *ID) Device() (string, error) {
	r, err := id.Route()
	if err != nil {
		return "", err
	}
	name, err := findDevice(id.ch.kernel, &r)
	if err != nil {
		return "", &Error{"find the device of", id.name(), err}
	}
	return name, nil
}

// findDevice looks for the device with the route's GUID. Devices on one network
// interface may share it: then the one with the local address among its GIDs.
func findDevice(k kshim.Kernel, r *Route) (string, error) {
	list, err := verbs.Devices(k)
	if err != nil {
		return "", err
	}
	var same, seen []string
	for _, d := range list {
		guid, err := nodeGUID(k, d.Name)
		if err != nil {
			continue // removed meanwhile
		}
		seen = append(seen, fmt.Sprintf("%s (%016x)", d.Name, guid))
		if guid == r.NodeGUID && guid != 0 {
			same = append(same, d.Name)
		}
	}
	for _, name := range same {
		if len(same) == 1 || hasGID(k, name, r) {
			return name, nil
		}
	}
	return "", fmt.Errorf("%w: its GUID is %016x, and there are %s", errNoDevice, r.NodeGUID, strings.Join(seen, ", "))
}

// nodeGUID reads a GUID in the form 0200:00ff:fe00:0001.
func nodeGUID(k kshim.Kernel, device string) (uint64, error) {
	text, err := verbs.ReadAttr(k, path.Join("/sys/class/infiniband", device, "node_guid"))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.ReplaceAll(text, ":", ""), 16, 64)
}

func hasGID(k kshim.Kernel, device string, r *Route) bool {
	gids, err := verbs.SysfsGIDs(k, device, r.Port)
	return err == nil && slices.ContainsFunc(gids, func(g verbs.GID) bool {
		return g.Addr == netip.AddrFrom16(r.Local.Addr().WithZone("").As16())
	})
}
