package netlinkmgr

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// watcher knows the last state and tells of changes.
type watcher struct {
	m        *Manager
	emit     func(Event)
	now      func() time.Time
	notified bool // the kernel tells of devices itself
	uevents  bool // uevents are heard
	silent   bool // while the first state is taken
	devices  []*watched
	netdevs  map[int]NetDev
	// looked counts what a look told of devices before its uevent came, which
	// then tells nothing new: "add rxe0".
	looked map[string]int
}

// watched is a device as it was last seen.
type watched struct {
	index uint32
	name  string
	ports map[uint32]*watchedPort
}

type watchedPort struct {
	state  *PortState
	netdev string
	ndev   uint32 // its index
	gids   map[int]GID
}

// start takes the first state.
func (w *watcher) start(ctx context.Context) error {
	devs, err := w.m.netDevs(ctx)
	if err != nil {
		return err
	}
	w.netdevs = map[int]NetDev{}
	for _, d := range devs {
		w.netdevs[d.Index] = d
	}
	w.silent = true
	err = w.look(ctx, true)
	w.silent = false
	return err
}

// tell gives an event away.
func (w *watcher) tell(e Event) {
	if w.silent || w.notified && e.Kind.kernels() && e.Source != SourceRDMA {
		return
	}
	e.Time = w.now()
	w.emit(e)
}

func (w *watcher) find(match func(*watched) bool) *watched {
	if i := slices.IndexFunc(w.devices, match); i >= 0 {
		return w.devices[i]
	}
	return nil
}

func (w *watcher) named(name string) *watched {
	return w.find(func(d *watched) bool { return d.name == name })
}

// rename gives a device its new name.
func (w *watcher) rename(d *watched, name string, source EventSource) {
	old := d.name
	d.name = name
	w.tell(Event{Kind: EventRename, Source: source, Device: name, Index: &d.index, From: old, To: name})
}

// notification takes over what the kernel says; what it does not say of what
// was before is added.
func (w *watcher) notification(e Event) {
	d := w.find(func(d *watched) bool { return d.index == *e.Index })
	switch {
	case d == nil:
	case e.Kind == EventRename:
		e.From, e.To, d.name = d.name, e.Device, e.Device
	case e.Kind == EventUnregister:
		w.devices = slices.DeleteFunc(w.devices, func(x *watched) bool { return x == d })
	case e.Kind == EventNetDevRename && d.ports[e.Port] != nil:
		e.From, e.To = d.ports[e.Port].netdev, e.NetDev
		d.ports[e.Port].netdev = e.NetDev
	}
	if e.From == e.To { // a look saw it first
		e.From, e.To = "", ""
	}
	w.tell(e)
}

// uevent tells of devices that come and go, also of those that went before
// they could be looked at.
func (w *watcher) uevent(ctx context.Context, u uevent) error {
	kinds := map[string]EventKind{"add": EventRegister, "remove": EventUnregister}
	kind := kinds[u.action]
	switch {
	case w.notified:
		return nil
	case u.action == "move":
		if old := w.named(u.old); old != nil && w.named(u.name) == nil {
			w.rename(old, u.name, SourceUevent)
		}
		return nil
	case kind == "" || w.lookedAlready(kind, u.name):
		return nil
	}
	if err := w.lookFrom(ctx, SourceUevent, true); err != nil {
		return err
	}
	if !w.lookedAlready(kind, u.name) {
		w.tell(Event{Kind: kind, Source: SourceUevent, Device: u.name})
	}
	return nil
}

func (w *watcher) lookedAlready(k EventKind, name string) bool {
	key := string(k) + " " + name
	if w.looked[key] == 0 {
		return false
	}
	if w.looked[key]--; w.looked[key] == 0 {
		delete(w.looked, key)
	}
	return true
}

// came and went are what a look finds of devices.
func (w *watcher) came(x Device, source EventSource) *watched {
	d := &watched{index: x.Index, name: x.Name, ports: map[uint32]*watchedPort{}}
	w.devices = append(w.devices, d)
	w.lookTells(EventRegister, d, source)
	return d
}

func (w *watcher) went(d *watched, source EventSource) {
	w.devices = slices.DeleteFunc(w.devices, func(x *watched) bool { return x == d })
	w.lookTells(EventUnregister, d, source)
}

func (w *watcher) lookTells(k EventKind, d *watched, source EventSource) {
	if !w.silent && !w.notified && w.uevents {
		w.looked[string(k)+" "+d.name]++
	}
	w.tell(Event{Kind: k, Source: source, Device: d.name, Index: &d.index})
}

// link tells of a network device that RDMA devices are on.
func (w *watcher) link(d NetDev, gone bool) {
	old, known := w.netdevs[d.Index]
	if gone {
		delete(w.netdevs, d.Index)
	} else {
		w.netdevs[d.Index] = d
	}
	if !known {
		return
	}
	for _, dev := range w.devices {
		for _, n := range sortedKeys(dev.ports) {
			if p := dev.ports[n]; int(p.ndev) == d.Index {
				w.linkChanged(dev, n, old, d, gone)
			}
		}
	}
}

func (w *watcher) linkChanged(dev *watched, port uint32, old, d NetDev, gone bool) {
	base := Event{Source: SourceLink, Device: dev.name, Index: &dev.index, Port: port, NetDev: d.Name, NetDevIndex: uint32(d.Index)}
	tell := func(k EventKind, from, to string) {
		if from != to {
			e := base
			e.Kind, e.From, e.To = k, from, to
			w.tell(e)
		}
	}
	if gone {
		tell(EventNetDevState, linkState(old), "gone")
		return
	}
	if dev.ports[port].netdev = d.Name; old.Name != d.Name {
		tell(EventNetDevRename, old.Name, d.Name)
	}
	tell(EventNetDevState, linkState(old), linkState(d))
	tell(EventNetDevMTU, strconv.Itoa(old.MTU), strconv.Itoa(d.MTU))
}

func linkState(d NetDev) string {
	switch {
	case !d.Up:
		return "down"
	case !d.Carrier:
		return "no-carrier"
	}
	return "up"
}

// look compares the state with the last one.
func (w *watcher) look(ctx context.Context, gids bool) error {
	return w.lookFrom(ctx, SourceLook, gids)
}

// lookFrom is a look that a notice asked for.
func (w *watcher) lookFrom(ctx context.Context, source EventSource, gids bool) error {
	list, err := w.m.Devices(ctx)
	if err != nil && !isNoRDMA(err) {
		return err
	}
	for _, d := range slices.Clone(w.devices) {
		if !slices.ContainsFunc(list, func(x Device) bool { return x.Index == d.index }) {
			w.went(d, source)
		}
	}
	for _, x := range list {
		d := w.find(func(d *watched) bool { return d.index == x.Index })
		switch {
		case d == nil:
			d = w.came(x, source)
		case d.name != x.Name:
			w.rename(d, x.Name, source)
		}
		if err := w.lookAt(ctx, d, x, gids); err != nil {
			return err
		}
	}
	return nil
}

// lookAt compares a device's ports. A device may go at any time.
func (w *watcher) lookAt(ctx context.Context, d *watched, x Device, gids bool) error {
	ports, err := w.m.Ports(ctx, x)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range ports {
		old := d.ports[p.Port]
		fresh := old == nil
		if fresh {
			old = &watchedPort{gids: map[int]GID{}}
			d.ports[p.Port] = old
		}
		w.comparePort(d, old, p)
		if fresh || gids {
			w.compareGIDs(d, old, p)
		}
	}
	return nil
}

func (w *watcher) comparePort(d *watched, old *watchedPort, p Port) {
	base := Event{Source: SourceLook, Device: d.name, Index: &d.index, Port: p.Port, NetDev: p.NetDev, NetDevIndex: p.NetDevIndex}
	if old.ndev != p.NetDevIndex {
		if old.ndev != 0 {
			e := base
			e.Kind, e.NetDev, e.NetDevIndex = EventNetDevDetach, old.netdev, old.ndev
			w.tell(e)
		}
		if p.NetDevIndex != 0 {
			e := base
			e.Kind = EventNetDevAttach
			w.tell(e)
		}
	} else if old.netdev != p.NetDev {
		e := base
		e.Kind, e.From, e.To = EventNetDevRename, old.netdev, p.NetDev
		w.tell(e)
	}
	old.netdev, old.ndev = p.NetDev, p.NetDevIndex
	if p.State != nil && (old.state == nil || *old.state != *p.State) {
		e := base
		e.Kind, e.To = EventPortState, p.State.String()
		if old.state != nil {
			e.From = old.state.String()
		}
		w.tell(e)
		old.state = p.State
	}
}

func (w *watcher) compareGIDs(d *watched, old *watchedPort, p Port) {
	list, err := w.m.readGIDs(d.name, p.Port)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // it changes just now, or another look will do
	}
	now := map[int]GID{}
	for _, g := range list {
		now[g.Index] = g
	}
	tell := func(k EventKind, g GID) {
		w.tell(Event{Kind: k, Source: SourceLook, Device: d.name, Index: &d.index, Port: p.Port, NetDev: g.NetDev, NetDevIndex: p.NetDevIndex, GID: &g})
	}
	for _, i := range sortedKeys(old.gids) {
		g := old.gids[i]
		if n, ok := now[i]; !ok || n.GID != g.GID || n.Type != g.Type {
			tell(EventGIDDelete, g)
		}
	}
	for _, g := range list {
		if o, ok := old.gids[g.Index]; !ok || o.GID != g.GID || o.Type != g.Type {
			tell(EventGIDAdd, g)
		}
	}
	old.gids = now
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
