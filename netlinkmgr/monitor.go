package netlinkmgr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/nldev"
)

// EventKind is the kind of an event. The first six are the kernel's own
// (rdma_nl_notify_event_type), in iproute2's words.
type EventKind string

// The kinds of events.
const (
	EventRegister     EventKind = "REGISTER"      // a device came
	EventUnregister   EventKind = "UNREGISTER"    // a device went
	EventNetDevAttach EventKind = "NETDEV_ATTACH" // a port has a network device
	EventNetDevDetach EventKind = "NETDEV_DETACH"
	EventRename       EventKind = "RENAME"        // a device has another name
	EventNetDevRename EventKind = "NETDEV_RENAME" // a port's network device has another name
	EventNetDevState  EventKind = "NETDEV_STATE"  // a port's network device: State, MTU
	EventLost         EventKind = "LOST"          // the kernel's messages came too fast
)

// kernelKinds are the values of RDMA_NLDEV_ATTR_EVENT_TYPE.
var kernelKinds = []EventKind{EventRegister, EventUnregister, EventNetDevAttach, EventNetDevDetach, EventRename, EventNetDevRename}

// EventSource is how the monitor learnt of an event.
type EventSource string

// The sources.
const (
	SourceRDMA   EventSource = "rdma"   // a notification of the RDMA core (Linux 6.13)
	SourceUevent EventSource = "uevent" // of a kernel object
	SourceLink   EventSource = "link"   // a message about a network device
)

// Event is the kernel's notice about an RDMA device or the network device of
// its port.
type Event struct {
	Time        time.Time
	Kind        EventKind
	Source      EventSource
	Device      string
	Index       *uint32 // the device's; a uevent has none
	Port        uint32  // 0 where the event is about no port
	NetDev      string
	NetDevIndex uint32
	Old         string // the name before a RENAME that a uevent told
	State       string // of the network device: up, down, no-carrier
	MTU         int    // of the network device in bytes
}

// MonitorOptions are the receivers of a monitor's news.
type MonitorOptions struct {
	// Event is given each event, in order, one at a time.
	Event func(Event)
	// Log is told once what the monitor listens to; events from then on are
	// told.
	Log func(string)
}

// Monitor passes on the kernel's notices about RDMA devices and their network
// devices in this network namespace until ctx ends, which is no error. Devices
// come, go and get names by RDMA's notifications, or where the kernel has none
// (before 6.13) by uevents; network devices by RTNETLINK. Of ports and GIDs the
// kernel tells only a program that has the device open.
func (m *Manager) Monitor(ctx context.Context, o MonitorOptions) error {
	err := m.monitor(ctx, o)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (m *Manager) monitor(ctx context.Context, o MonitorOptions) error {
	sys, err := m.System(ctx)
	if err != nil && !isNoRDMA(err) {
		return err
	}
	notified, hears := sys.Monitor != nil && *sys.Monitor, "uevents"
	if notified {
		hears = "RDMA notifications"
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	const op = "listen to the kernel"
	notices, err := m.k.Listen(ctx, notified)
	if err != nil {
		return refused(op, err)
	}
	if o.Log != nil {
		o.Log("listening to " + hears + " and to messages about network devices")
	}
	for n := range notices {
		events, err := m.events(ctx, n)
		if err != nil {
			return opError(op, err)
		}
		for _, e := range events {
			e.Time = time.Now()
			o.Event(e)
		}
	}
	return &OpError{op, fmt.Errorf("its sockets were closed: %w", syscall.EPIPE)}
}

// events returns the events of a notice: none if it is not about RDMA.
func (m *Manager) events(ctx context.Context, n Notice) ([]Event, error) {
	switch {
	case errors.Is(n.Err, syscall.ENOBUFS):
		return []Event{{Kind: EventLost, Source: n.Source}}, nil
	case n.Err != nil:
		return nil, n.Err
	case n.Link != nil:
		return m.netDevEvents(ctx, n.Link)
	case n.Source == SourceRDMA:
		e, err := parseNotification(n.Message)
		return []Event{e}, err
	}
	if e, ok := parseUevent(n.Message); ok {
		return []Event{e}, nil
	}
	return nil, nil
}

// netDevEvents are one for each port that is on the network device.
func (m *Manager) netDevEvents(ctx context.Context, d *NetDev) (list []Event, err error) {
	state := "up"
	switch {
	case !d.Up:
		state = "down"
	case !d.Carrier:
		state = "no-carrier"
	}
	links, err := m.Links(ctx)
	if isNoRDMA(err) {
		return nil, nil
	}
	for _, p := range links {
		if int(p.NetDevIndex) == d.Index {
			list = append(list, Event{Kind: EventNetDevState, Source: SourceLink, Device: p.Device, Index: &p.DeviceIndex, Port: p.Port,
				NetDev: d.Name, NetDevIndex: p.NetDevIndex, State: state, MTU: d.MTU})
		}
	}
	return list, err
}

// parseNotification reads an RDMA notification (nldev.c:
// rdma_nl_notify_event). A kind that is not known has its number as its name.
func parseNotification(b []byte) (Event, error) {
	var n struct {
		Kind        uint8  `nldev:"EVENT_TYPE,required"`
		Device      string `nldev:"DEV_NAME,required"`
		Index       uint32 `nldev:"DEV_INDEX,required"`
		Port        uint32 `nldev:"PORT_INDEX"`
		NetDev      string `nldev:"NDEV_NAME"`
		NetDevIndex uint32 `nldev:"NDEV_INDEX"`
	}
	if err := nldev.Decode(b, &n); err != nil {
		return Event{}, err
	}
	if n.Device == "" {
		return Event{}, &nldev.Error{Reason: "a notification has an empty device name"}
	}
	kind := EventKind(fmt.Sprintf("UNKNOWN_%02x", n.Kind))
	if int(n.Kind) < len(kernelKinds) {
		kind = kernelKinds[n.Kind]
	}
	return Event{Kind: kind, Source: SourceRDMA, Device: n.Device, Index: &n.Index, Port: n.Port, NetDev: n.NetDev, NetDevIndex: n.NetDevIndex}, nil
}

// parseUevent reads a uevent (lib/kobject_uevent.c): "ACTION@DEVPATH", then
// KEY=VALUE words, each with a NUL behind it. It is false for a message that is
// no RDMA device's coming, going or renaming.
func parseUevent(b []byte) (Event, bool) {
	head, rest, _ := bytes.Cut(b, []byte{0})
	values := map[string]string{}
	for word := range bytes.SplitSeq(rest, []byte{0}) {
		if key, value, ok := strings.Cut(string(word), "="); ok {
			values[key] = value
		}
	}
	dir, name := path.Split(values["DEVPATH"])
	kind := map[string]EventKind{"add": EventRegister, "remove": EventUnregister, "move": EventRename}[values["ACTION"]]
	if !bytes.Contains(head, []byte("@")) || values["SUBSYSTEM"] != "infiniband" || !strings.HasSuffix(dir, "/infiniband/") || name == "" || kind == "" {
		return Event{}, false
	}
	e := Event{Kind: kind, Source: SourceUevent, Device: name}
	if old := values["DEVPATH_OLD"]; old != "" {
		e.Old = path.Base(old)
	}
	return e, true
}
