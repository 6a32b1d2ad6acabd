package doctor

import (
	"fmt"
	"net/netip"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// checkGID looks for a GID that peers reach.
func checkGID(e *exam) Check {
	if e.kind != host {
		return e.checkSoftGID()
	}
	if e.rdma == nil {
		return e.noDevice()
	}
	give := e.netDevFix(fmt.Sprintf("ip addr add ADDRESS/PREFIX dev %s", e.netDevName()))
	var best *netlinkmgr.GID
	for i := range e.gids {
		if e.gids[i].Best {
			best = &e.gids[i]
		}
	}
	switch {
	case len(e.gids) == 0:
		return fail(give, "the GID table is empty")
	case best == nil:
		return fail(give, "none of the %d GIDs can be used: index %d: %s", len(e.gids), e.gids[0].Index, e.gids[0].Why)
	case best.Type != netlinkmgr.GIDRoCEv2:
		return fail(give, "no RoCE v2 entry: index %d is %s", best.Index, best.Type)
	case e.opened != nil && e.info.GIDIndex != best.Index:
		return warn(fmt.Sprintf("open it with GID index %d: uapi.OpenConfig{GIDIndex: new(%d)}", best.Index, best.Index), "index %d (%s) would be used, but %d (%s) is the one to use: %s",
			e.info.GIDIndex, e.info.Address.Addr(), best.Index, best.Addr(), best.Why)
	case best.Scope == netlinkmgr.ScopeLinkLocal:
		return warn(give, "only the link-local GID %d (%s) can be used: peers must be on the same link", best.Index, best.Addr())
	}
	return pass("index %d, %s: %s", best.Index, best.Addr(), best.Why)
}

func (e *exam) checkSoftGID() Check {
	if e.opened == nil {
		return skip("the device does not open: see loopback")
	}
	for _, g := range e.info.GIDs {
		if g.Index == e.info.GIDIndex {
			if g.Addr.IsLinkLocalUnicast() {
				return warn("take another address of 'rdmashim devices'", "index %d is the link-local %s: peers must be on the same link", g.Index, g.Addr)
			}
			return pass("index %d, %s (%s)", g.Index, g.Addr, g.Type)
		}
	}
	return fail("take an address of 'rdmashim devices'", "the GID table has no entry %d", e.info.GIDIndex)
}

// addressOf prints an address for a message.
func addressOf(a netip.Addr) string {
	if !a.IsValid() {
		return "ADDRESS"
	}
	return a.WithZone("").String()
}
