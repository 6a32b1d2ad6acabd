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
func (c *Context) choose(config OpenConfig) error {
	attr, err := c.verbs.QueryDevice()
	if err != nil {
		return err
	}
	c.limits = limits{
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
	port, err := c.choosePort(config.Port)
	if err != nil {
		return err
	}
	c.limits.message = uint64(port.MaxMsgSz)
	gids, err := c.verbs.GIDs(uint8(c.chosen.port))
	if err != nil {
		return err
	}
	if c.chosen.gid, c.chosen.reason, err = device.ChooseGID(gids, config.GIDIndex); err != nil {
		return err
	}
	udp := uint16(RoCEPort)
	if port.LID != 0 {
		udp = port.LID // how a soft device tells its UDP port
	}
	c.chosen.addr = netip.AddrPortFrom(c.chosen.gid.Addr.Unmap(), udp)
	return c.chooseMTU(config.MTU, port.ActiveMTU.Bytes())
}

// choosePort takes the port asked for, else the first active one.
func (c *Context) choosePort(ask int) (port verbs.PortAttr, err error) {
	if ask < 0 || ask > c.limits.ports {
		return port, errs.Explain(syscall.EINVAL, "the device has ports 1 … %d, not %d", c.limits.ports, ask)
	}
	first, last := ask, ask
	if ask == 0 {
		first, last = 1, c.limits.ports
	}
	for n := first; n <= last; n++ {
		port, err = c.verbs.QueryPort(uint8(n))
		if err != nil {
			return port, err
		}
		if port.State == abi.PortActive || ask != 0 {
			c.chosen.port = n
			return port, nil
		}
	}
	return port, errs.Explain(syscall.ENETDOWN, "none of the device's %d ports is active (port %d is %v); is its interface up?", c.limits.ports, last, port.State)
}

func (c *Context) chooseMTU(ask, active int) error {
	switch {
	case active == 0:
		return errs.Explain(syscall.EIO, "the port has no active MTU")
	case ask == 0:
		c.chosen.mtu = active
	case !abi.IsPathMTU(ask) || ask > active:
		return errs.Explain(syscall.EINVAL, "MTU %d is not a path MTU up to the port's %d", ask, active)
	default:
		c.chosen.mtu = ask
	}
	return nil
}
