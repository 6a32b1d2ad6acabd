package guest

import (
	"context"
	"time"

	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// linkLimit is how long a port may take to become active: emulated processors
// are slow, and their host may be busy.
const linkLimit = time.Minute

// ensureLink has the link manager make the rxe link and wait until it can be
// used; step gets a line for each thing done, with the reason.
func ensureLink(ctx context.Context, name, netdev string, step func(string, ...any)) error {
	r, err := netlinkmgr.Ensure(ctx, netlinkmgr.EnsureOptions{
		Name:    name,
		NetDev:  netdev,
		Timeout: linkLimit,
		Modules: []string{"rdma_ucm", "ib_umad"},
		Log:     func(s string) { step("link %s: %s", name, s) },
	})
	if err != nil {
		return err
	}
	for _, why := range r.Reasons {
		step("link %s: %s", name, why)
	}
	for _, w := range r.Warnings {
		step("link %s: warning: %s", name, w)
	}
	step("link %s: on %s, port %v, GID %d %v", r.Device, r.NetDev, r.State, r.GIDIndex, r.GID)
	return nil
}
