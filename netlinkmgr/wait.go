package netlinkmgr

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// pollEvery is how often the wait looks: of ports and GIDs the kernel tells
// only a program that has the device open.
const pollEvery = 20 * time.Millisecond

// wait looks until the port is active and a usable RoCE v2 GID is there, or
// until the time is over.
func (e *ensuring) wait(ctx context.Context) error {
	limit, cancel := context.WithTimeoutCause(ctx, e.o.Timeout, syscall.ETIMEDOUT)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	start := time.Now()
	for {
		v, err := e.look(ctx)
		if err != nil {
			return err
		}
		if v.gid != nil && !v.better {
			return e.finish(ctx, v)
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			if v.gid != nil && ctx.Err() == nil {
				e.reason(v.missing)
				return e.finish(ctx, v)
			}
			return &NotReadyError{
				Device: e.res.Device, NetDev: e.res.NetDev, Port: v.state(), Why: v.missing,
				Waited: time.Since(start).Round(time.Millisecond), Err: context.Cause(limit),
			}
		}
	}
}

// view is the result of one look.
type view struct {
	device  Device
	port    Port
	gid     *GID
	better  bool   // a better GID is on its way
	missing string // the part that is not there yet, and the remedy
}

func (v *view) state() string {
	if v.port.State == nil {
		return "unknown"
	}
	return v.port.State.String()
}

// look sees whether the link is usable.
func (e *ensuring) look(ctx context.Context) (v view, err error) {
	if v.device, err = e.m.Device(ctx, e.res.Device); err != nil {
		return v, err
	}
	if v.port, err = e.m.Port(ctx, v.device, 1); err != nil {
		return v, err
	}
	devs, err := e.m.NetDevs(ctx)
	if err != nil {
		return v, err
	}
	d, err := findNetDev(devs, e.res.NetDev)
	if err != nil {
		return v, err
	}
	if !v.port.Active() {
		v.missing = inactive(d)
		return v, nil
	}
	gids, err := e.m.readGIDs(e.res.Device, 1)
	if err != nil {
		return v, err
	}
	gids = slices.DeleteFunc(gids, func(g GID) bool { return g.Type != GIDRoCEv2 })
	judgeGIDs(gids, devs)
	v.gid = bestGID(gids)
	v.better, v.missing = e.lacking(v.gid, d)
	return v, nil
}

func inactive(d NetDev) string {
	switch {
	case !d.Up:
		return fmt.Sprintf("%s is down: ip link set %s up", d.Name, d.Name)
	case !d.Carrier:
		return fmt.Sprintf("%s has no carrier: connect its cable or bring its peer up", d.Name)
	}
	return "the port did not become active: see dmesg"
}

// lacking reports whether an address of the network device promises a better
// GID than the best one now, and names what it lacks.
func (e *ensuring) lacking(best *GID, d NetDev) (better bool, missing string) {
	promised := 2 - addressRank(d) // 2: IPv4, 1: global IPv6, 0: link-local at most
	have := -1
	if best != nil {
		have = 2 - gidRank(best)
	}
	switch {
	case len(d.Addrs) == 0:
		return false, fmt.Sprintf("%s has no address: ip addr add ADDRESS/PREFIX dev %s", d.Name, d.Name)
	case best == nil:
		return false, fmt.Sprintf("no GID for an address of %s yet (IPv6 addresses count after duplicate address detection)", d.Name)
	}
	return have < promised, fmt.Sprintf("a GID for the best address of %s did not appear", d.Name)
}

// finish fills in the result.
func (e *ensuring) finish(ctx context.Context, v view) error {
	r := &e.res
	r.Port, r.State = v.port.Port, *v.port.State
	r.GIDIndex, r.GID, r.GIDType = v.gid.Index, v.gid.GID, v.gid.Type
	e.reason(fmt.Sprintf("GID index %d (%s): %s", v.gid.Index, v.gid.Addr(), v.gid.Why))
	if c, err := e.m.CharDev(ctx, v.device, "uverbs"); err == nil {
		r.UVerbs = "/dev/infiniband/" + c.Name
	} else {
		r.Warnings = append(r.Warnings, "no verbs device file: processes cannot open "+r.Device+" until the module ib_uverbs is loaded")
	}
	return nil
}
