package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// size is a number of bytes in binary units, without a fraction that is zero.
func size(n int64) string { return strings.Replace(cli.Size(n), ".0 ", " ", 1) }

// checkNetDev looks whether the network device below carries packets.
func checkNetDev(e *exam) Check {
	d := e.dev
	switch {
	case d == nil && len(e.devs) == 0:
		return skip("the network devices cannot be listed")
	case d == nil && e.kind == soft:
		return e.noAddress()
	case d == nil && e.rdma != nil && e.below() != "":
		return fail("run in the network namespace of "+e.below(), "%s is on %s, which is not in this network namespace", e.kernel, e.below())
	case d == nil && e.rdma != nil:
		return fail(fmt.Sprintf("rdmashim link delete %s; rdmashim link up", e.kernel), "%s has no network device any more", e.kernel)
	case d == nil:
		return e.noDevice()
	case !d.Up:
		return fail("ip link set "+d.Name+" up", "%s is down", d.Name)
	case !d.Carrier:
		return fail("connect the cable of "+d.Name+", or bring its other end up (of a veth: ip link set PEER up)", "%s is up, but has no carrier", d.Name)
	case e.kind == soft && e.tentative():
		return fail(fmt.Sprintf("wait 2 s; if it stays, another machine has the address: ip addr show dev %s tentative", d.Name), "the address %s of %s is not usable yet: duplicate address detection has not ended, or found one", addressOf(e.addr), d.Name)
	}
	return pass("%s is up, MTU %d", d.Name, d.MTU)
}

// noAddress: a soft device is asked for an address that is not there, or not on
// the network device that its zone names.
func (e *exam) noAddress() Check {
	bits, netdev, at := 24, "NETDEV", addressOf(e.addr)
	if e.addr.Is6() {
		bits = 64
	}
	if zone := e.addr.Zone(); zone != "" {
		netdev, at = zone, at+"%"+zone
	}
	return fail(fmt.Sprintf("ip addr add %s/%d dev %s, or take an address of 'rdmashim devices'", addressOf(e.addr), bits, netdev), "no network device has the address %s", at)
}

// tentative says whether the device's address waits for duplicate address
// detection (RFC 4862, 5.4): until then no socket can have it.
func (e *exam) tentative() bool {
	return slices.ContainsFunc(e.dev.Addrs, func(a netlinkmgr.NetAddr) bool {
		return a.Tentative && a.Prefix.Addr() == e.addr.WithZone("")
	})
}

// headroom is the part of a network device's MTU that rdma_rxe and soft devices
// keep for headers, in bytes.
const headroom = abi.MTUHeadroom

// pathMTU is the largest that fits a network device's MTU; 0 for none.
func pathMTU(mtu int) int { return abi.FitMTU(mtu - headroom).Bytes() }

// checkMTU compares the port's active MTU with the network device's.
func checkMTU(e *exam) Check {
	active := e.info.MTU
	if e.dev == nil {
		if active == 0 {
			return skip("no device is open and no network device known")
		}
		return pass("active MTU %d", active)
	}
	d := e.dev
	fits := pathMTU(d.MTU)
	grow := fmt.Sprintf("ip link set %s mtu %d", d.Name, 1500)
	asked := strings.Contains(e.o.Device, "mtu=")
	switch {
	case fits == 0:
		return fail(grow, "the MTU of %s is %d: not even packets of 256 bytes and their headers fit", d.Name, d.MTU)
	case active > fits:
		return fail(fmt.Sprintf("ip link set %s mtu %d", d.Name, active+headroom), "the port's active MTU is %d, but the MTU of %s is %d: full packets are lost", active, d.Name, d.MTU)
	case active != 0 && active < fits && !asked && d.Up:
		fix := "open the device again"
		if e.kind == host {
			fix = fmt.Sprintf("rdmashim link delete %s; rdmashim link up --name %s %s", e.kernel, e.kernel, d.Name)
		}
		return warn(fix, "the port's active MTU is %d, though the MTU of %s, %d, carries %d", active, d.Name, d.MTU, fits)
	case active == 0 && fits < 1024:
		return warn(grow, "the MTU of %s is %d: packets of %d bytes at most", d.Name, d.MTU, fits)
	case active != 0 && active < 1024 && !asked:
		return warn(grow, "active MTU %d, for the MTU of %s is %d: small packets are slow, and peers must use them too", active, d.Name, d.MTU)
	case active == 0:
		return pass("the MTU of %s, %d, carries packets of %d bytes", d.Name, d.MTU, fits)
	case active < 4096 && !asked:
		return pass("active MTU %d on %s's %d (4096 needs %d there, on the way and at the peer)", active, d.Name, d.MTU, 4096+headroom)
	}
	return pass("active MTU %d on %s's %d", active, d.Name, d.MTU)
}

// checkPort looks at the port's state.
func checkPort(e *exam) Check {
	number, state := max(e.info.Port, 1), e.info.PortState
	if e.rdma != nil {
		number, state = int(e.rdma.Port), "unknown"
		if e.rdma.State != nil {
			state = uapi.PortState(e.rdma.State.String())
		}
	}
	if state == "" {
		if e.kind == host {
			return e.noDevice()
		}
		return skip("the device does not open: see loopback")
	}
	if state == uapi.PortActive {
		return pass("port %d is ACTIVE", number)
	}
	return fail(e.netDevFix("see dmesg"), "port %d is %s: nothing is sent or received", number, state)
}

// netDevFix is the command that mends the network device where that comes
// first: afterwards the parts above it are in order, or their own fixes help.
func (e *exam) netDevFix(other string) string {
	if c := checkNetDev(e); c.Status == Fail {
		return c.Fix
	}
	return other
}

// checkHardware looks for RDMA hardware on the same network device: it takes
// packets to UDP 4791 before the network stack sees them. For a kernel device
// it also looks for one that programs find first.
func checkHardware(e *exam) Check {
	if e.rdmaErr != nil {
		return pass("the kernel has no RDMA device")
	}
	if e.dev == nil {
		return skip("the network device is not known")
	}
	i := slices.IndexFunc(e.ports, func(p netlinkmgr.Port) bool {
		return p.NetDev == e.dev.Name && p.Device != e.kernel && e.isCard(p.Device)
	})
	if first := e.foreign(); i < 0 && first != "" {
		return warn(fmt.Sprintf("name the device to programs, as by ib_write_bw -d %s", e.kernel),
			"%s is another device, which programs of libibverbs find before %s: those that take the first get it", first, e.kernel)
	}
	if i < 0 {
		return pass("no RDMA card is on %s", e.dev.Name)
	}
	card := e.ports[i].Device
	fix := "use " + card + " with programs of libibverbs, or a network device without an RDMA card"
	if e.kind == host && e.rxe {
		fix = fmt.Sprintf("rdmashim link delete %s, and %s", e.kernel, fix)
	}
	return warn(fix, "the RDMA device %s is on %s, too: a card takes packets to UDP port %d for itself", card, e.dev.Name, e.port)
}

// foreign is the device that libibverbs lists first where that is neither the
// kernel device nor another link of rdma_rxe. It lists them by their indices,
// as the kernel does (libibverbs/init.c: try_all_drivers).
func (e *exam) foreign() string {
	if e.rdma == nil || len(e.ports) == 0 {
		return ""
	}
	first := slices.MinFunc(e.ports, func(a, b netlinkmgr.Port) int { return cmp.Compare(a.DeviceIndex, b.DeviceIndex) })
	d, err := e.m.Device(e.ctx, first.Device)
	if err != nil || first.Device == e.kernel || e.m.IsRXE(e.ctx, d) {
		return ""
	}
	return first.Device
}

// isCard says whether a device takes RoCE packets before the network stack: not
// rdma_rxe, and not iWARP, which is on TCP.
func (e *exam) isCard(name string) bool {
	d, err := e.m.Device(e.ctx, name)
	return err == nil && d.Protocol != "iw" && !e.m.IsRXE(e.ctx, d)
}
