package netlinkmgr

import (
	"bytes"
	"path"
	"strings"
	"time"
)

// EventKind says what happened. The first six are the kernel's own
// (rdma_nl_notify_event_type), in iproute2's words.
type EventKind string

// The kinds of events.
const (
	EventRegister     EventKind = "REGISTER"      // a device came
	EventUnregister   EventKind = "UNREGISTER"    // a device went
	EventNetDevAttach EventKind = "NETDEV_ATTACH" // a port has a network device
	EventNetDevDetach EventKind = "NETDEV_DETACH"
	EventRename       EventKind = "RENAME"        // a device has another name: From, To
	EventNetDevRename EventKind = "NETDEV_RENAME" // a port's network device has another name

	EventPortState   EventKind = "PORT_STATE"   // From, To: DOWN, ACTIVE …
	EventGIDAdd      EventKind = "GID_ADD"      // an entry of a port's GID table
	EventGIDDelete   EventKind = "GID_DELETE"   //
	EventNetDevState EventKind = "NETDEV_STATE" // From, To: up, down, no-carrier
	EventNetDevMTU   EventKind = "NETDEV_MTU"   // From, To: bytes
	EventLost        EventKind = "LOST"         // messages were lost; what could be seen is told
)

// kernelKinds are the values of RDMA_NLDEV_ATTR_EVENT_TYPE.
var kernelKinds = []EventKind{EventRegister, EventUnregister, EventNetDevAttach, EventNetDevDetach, EventRename, EventNetDevRename}

// kernels says whether the kernel's own notifications tell of this kind.
func (k EventKind) kernels() bool {
	for _, x := range kernelKinds {
		if x == k {
			return true
		}
	}
	return false
}

// EventSource says how the monitor learnt of an event.
type EventSource string

// The sources.
const (
	SourceRDMA   EventSource = "rdma"   // a notification of the RDMA core (Linux 6.13)
	SourceUevent EventSource = "uevent" // of a kernel object
	SourceLink   EventSource = "link"   // a message about a network device
	SourceLook   EventSource = "look"   // the state was another than before
)

// Event is one change of RDMA devices, their ports, GIDs and network devices.
type Event struct {
	Time        time.Time
	Kind        EventKind
	Source      EventSource
	Device      string
	Index       *uint32 // the device's; nil when it went before it was seen
	Port        uint32  // 0 where the event is about no port
	NetDev      string
	NetDevIndex uint32
	From, To    string
	GID         *GID // of GID events
}

// parseNotification reads an RDMA notification (nldev.c:
// rdma_nl_notify_event). A kind that is not known has its number as its name.
func parseNotification(b []byte) (Event, error) {
	var h handle
	e := Event{Source: SourceRDMA}
	a := newAttrs(b)
	for a.next() {
		if h.take(a) {
			continue
		}
		switch a.typ {
		case attrEventType:
			e.Kind = kindOf(a.u8())
		case attrPortIndex:
			e.Port = a.u32()
		case attrNDevIndex:
			e.NetDevIndex = a.u32()
		case attrNDevName:
			e.NetDev = a.str()
		}
	}
	e.Device, e.Index = h.name, &h.index
	if err := h.check(a, "notification"); err != nil {
		return Event{}, err
	}
	if e.Kind == "" {
		return Event{}, &MessageError{Reason: "notification without type"}
	}
	return e, nil
}

func kindOf(n uint8) EventKind {
	if int(n) < len(kernelKinds) {
		return kernelKinds[n]
	}
	return EventKind("UNKNOWN_" + string("0123456789abcdef"[n>>4]) + string("0123456789abcdef"[n&15]))
}

// uevent is what a uevent says of an RDMA device.
type uevent struct {
	action string // add, remove, move, change …
	name   string // of the device
	old    string // before a move
}

// parseUevent reads a uevent (lib/kobject_uevent.c): "ACTION@DEVPATH", then
// KEY=VALUE words, each with a NUL behind it. It is false for what is no RDMA
// device's.
func parseUevent(b []byte) (uevent, bool) {
	head, rest, _ := bytes.Cut(b, []byte{0})
	if !bytes.Contains(head, []byte("@")) {
		return uevent{}, false
	}
	var u uevent
	values := map[string]string{}
	for word := range bytes.SplitSeq(rest, []byte{0}) {
		if key, value, ok := strings.Cut(string(word), "="); ok {
			values[key] = value
		}
	}
	dir, name := path.Split(values["DEVPATH"])
	if values["SUBSYSTEM"] != "infiniband" || !strings.HasSuffix(dir, "/infiniband/") || name == "" {
		return uevent{}, false
	}
	u.action, u.name = values["ACTION"], name
	if old := values["DEVPATH_OLD"]; old != "" {
		u.old = path.Base(old)
	}
	return u, u.action != ""
}
