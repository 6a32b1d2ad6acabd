package device

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/gidtable"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// gidRank says which entry of a GID table a peer most likely reaches:
// gidtable.Rank.
func gidRank(g verbs.GID) int { return gidtable.Rank(g.Addr, g.Type == abi.GIDTypeRoCEv2) }

var gidKinds = [...]string{"RoCE v2, IPv4", "RoCE v2, global IPv6", "RoCE v2, link-local IPv6", "RoCE v1, IPv4", "RoCE v1", "RoCE v1"}

// ChooseGID takes the entry asked for, else the best by gidRank, and of equals
// the first.
func ChooseGID(gids []verbs.GID, ask *int) (verbs.GID, string, error) {
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
	best := BestGID(gids)
	rank := gidRank(best)
	kind := gidKinds[rank]
	reason := fmt.Sprintf("%s, the first choice among %d entries (order: RoCE v2 IPv4, v2 global IPv6, v2 link-local, v1)", kind, len(gids))
	if rank >= 3 {
		reason = fmt.Sprintf("%s, for want of a RoCE v2 entry among %d", kind, len(gids))
	}
	return best, reason, nil
}

// BestGID is the first of those with the best rank.
func BestGID(gids []verbs.GID) verbs.GID {
	return slices.MinFunc(gids, func(a, b verbs.GID) int { return gidRank(a) - gidRank(b) })
}
