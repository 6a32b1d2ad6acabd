package uapi

import (
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/device"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// choice is the port, GID and MTU that are used of a device, and why.
type choice struct {
	port   int
	gid    verbs.GID
	reason string
	addr   netip.AddrPort // of the GID
	mtu    int            // bytes
}

// limits are the device's.
type limits struct {
	message       uint64
	mrSize        uint64
	mr, qp, cq    int
	cqe, depth    int
	sge, rdAtomic int
	srqDepth      int
	srqSGE        int
	guid          uint64
	ports         int
}

// choose asks the device for its limits, and chooses port, GID and MTU.
func (d *Device) choose(config OpenConfig) error {
	attr, err := d.verbs.QueryDevice()
	if err != nil {
		return err
	}
	d.limits = limits{
		mrSize:   attr.MaxMRSize,
		mr:       int(attr.MaxMR),
		qp:       int(attr.MaxQP),
		cq:       int(attr.MaxCQ),
		cqe:      int(attr.MaxCQE),
		depth:    int(attr.MaxQPWR),
		sge:      int(attr.MaxSGE),
		srqDepth: int(attr.MaxSRQWR),
		srqSGE:   int(attr.MaxSRQSGE),
		rdAtomic: int(min(attr.MaxQPRdAtom, maxRdAtomic)),
		guid:     attr.NodeGUID,
		ports:    int(attr.PhysPortCnt),
	}
	port, err := d.choosePort(config.Port)
	if err != nil {
		return err
	}
	d.limits.message = uint64(port.MaxMsgSz)
	gids, err := d.verbs.GIDs(uint8(d.chosen.port))
	if err != nil {
		return err
	}
	if d.chosen.gid, d.chosen.reason, err = device.ChooseGID(gids, config.GIDIndex); err != nil {
		return err
	}
	udp := uint16(RoCEPort)
	if port.LID != 0 {
		udp = port.LID // how a soft device tells its UDP port
	}
	d.chosen.addr = netip.AddrPortFrom(d.chosen.gid.Addr.Unmap(), udp)
	return d.chooseMTU(config.MTU, port.ActiveMTU.Bytes())
}

// choosePort takes the port asked for, else the first active one.
func (d *Device) choosePort(ask int) (port verbs.PortAttr, err error) {
	if ask < 0 || ask > d.limits.ports {
		return port, errs.Explain(syscall.EINVAL, "the device has ports 1 … %d, not %d", d.limits.ports, ask)
	}
	first, last := ask, ask
	if ask == 0 {
		first, last = 1, d.limits.ports
	}
	for n := first; n <= last; n++ {
		port, err = d.verbs.QueryPort(uint8(n))
		if err != nil {
			return port, err
		}
		if port.State == abi.PortActive || ask != 0 {
			d.chosen.port = n
			return port, nil
		}
	}
	return port, errs.Explain(syscall.ENETDOWN, "none of the device's %d ports is active (port %d is %v); is its interface up?", d.limits.ports, last, port.State)
}

func (d *Device) chooseMTU(ask, active int) error {
	switch {
	case active == 0:
		return errs.Explain(syscall.EIO, "the port has no active MTU")
	case ask == 0:
		d.chosen.mtu = active
	case !abi.IsPathMTU(ask) || ask > active:
		return errs.Explain(syscall.EINVAL, "MTU %d is not a path MTU up to the port's %d", ask, active)
	default:
		d.chosen.mtu = ask
	}
	return nil
}
