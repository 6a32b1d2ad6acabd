package uapi

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/gidtable"
	"github.com/rdmashim/rdmashim/kshim/verbs"
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

// choose asks the device for its limits and settles on port, GID and MTU.
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
	if c.chosen.gid, c.chosen.reason, err = chooseGID(gids, config.GIDIndex); err != nil {
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
	case !isPathMTU(ask) || ask > active:
		return errs.Explain(syscall.EINVAL, "MTU %d is not a path MTU up to the port's %d", ask, active)
	default:
		c.chosen.mtu = ask
	}
	return nil
}

// gidRank says which entry of a GID table a peer most likely reaches:
// gidtable.Rank.
func gidRank(g verbs.GID) int { return gidtable.Rank(g.Addr, g.Type == abi.GIDTypeRoCEv2) }

var gidKinds = [...]string{"RoCE v2, IPv4", "RoCE v2, global IPv6", "RoCE v2, link-local IPv6", "RoCE v1, IPv4", "RoCE v1", "RoCE v1"}

// chooseGID takes the entry asked for, else the best by gidRank, and of equals
// the first.
func chooseGID(gids []verbs.GID, ask *int) (verbs.GID, string, error) {
	if ask != nil {
		i := slices.IndexFunc(gids, func(g verbs.GID) bool { return g.Index == *ask })
		if i < 0 {
			return verbs.GID{}, "", errs.Explain(syscall.EINVAL, "the port's GID table has no entry %d (%d entries)", *ask, len(gids))
		}
		return gids[i], fmt.Sprintf("index %d was asked for", *ask), nil
	}
	if len(gids) == 0 {
		return verbs.GID{}, "", errs.Explain(syscall.EADDRNOTAVAIL, "the port's GID table is empty; has its interface an address?")
	}
	best := bestGID(gids)
	rank := gidRank(best)
	kind := gidKinds[rank]
	reason := fmt.Sprintf("%s, the first choice among %d entries (order: RoCE v2 IPv4, v2 global IPv6, v2 link-local, v1)", kind, len(gids))
	if rank >= 3 {
		reason = fmt.Sprintf("%s, for want of a RoCE v2 entry among %d", kind, len(gids))
	}
	return best, reason, nil
}

// bestGID is the first of those with the best rank.
func bestGID(gids []verbs.GID) verbs.GID {
	return slices.MinFunc(gids, func(a, b verbs.GID) int { return gidRank(a) - gidRank(b) })
}
