package abi

// EventType is the kind of an asynchronous event: enum ib_event_type.
type EventType uint32

const (
	EventCQErr            EventType = 0
	EventQPFatal          EventType = 1
	EventQPReqErr         EventType = 2
	EventQPAccessErr      EventType = 3
	EventCommEst          EventType = 4
	EventSQDrained        EventType = 5
	EventPathMig          EventType = 6
	EventPathMigErr       EventType = 7
	EventDeviceFatal      EventType = 8
	EventPortActive       EventType = 9
	EventPortErr          EventType = 10
	EventLIDChange        EventType = 11
	EventPkeyChange       EventType = 12
	EventSMChange         EventType = 13
	EventSRQErr           EventType = 14
	EventSRQLimitReached  EventType = 15
	EventQPLastWQEReached EventType = 16
	EventClientReregister EventType = 17
	EventGIDChange        EventType = 18
	EventWQFatal          EventType = 19
)

var eventTypeNames = map[EventType]string{
	EventCQErr:            "CQ_ERR",
	EventQPFatal:          "QP_FATAL",
	EventQPReqErr:         "QP_REQ_ERR",
	EventQPAccessErr:      "QP_ACCESS_ERR",
	EventCommEst:          "COMM_EST",
	EventSQDrained:        "SQ_DRAINED",
	EventPathMig:          "PATH_MIG",
	EventPathMigErr:       "PATH_MIG_ERR",
	EventDeviceFatal:      "DEVICE_FATAL",
	EventPortActive:       "PORT_ACTIVE",
	EventPortErr:          "PORT_ERR",
	EventLIDChange:        "LID_CHANGE",
	EventPkeyChange:       "PKEY_CHANGE",
	EventSMChange:         "SM_CHANGE",
	EventSRQErr:           "SRQ_ERR",
	EventSRQLimitReached:  "SRQ_LIMIT_REACHED",
	EventQPLastWQEReached: "QP_LAST_WQE_REACHED",
	EventClientReregister: "CLIENT_REREGISTER",
	EventGIDChange:        "GID_CHANGE",
	EventWQFatal:          "WQ_FATAL",
}

// String gives the kernel's name without its prefix, or EventType(n).
func (v EventType) String() string { return enumString(eventTypeNames, v, "EventType") }

// ElementKind says what AsyncEvent.Element names.
type ElementKind uint8

const (
	ElementPort ElementKind = iota // a port's number
	ElementCQ
	ElementQP
	ElementSRQ
	ElementWQ
)

// Element says what AsyncEvent.Element means in an event of this type.
func (v EventType) Element() ElementKind {
	switch v {
	case EventCQErr:
		return ElementCQ
	case EventQPFatal, EventQPReqErr, EventQPAccessErr, EventCommEst, EventSQDrained,
		EventPathMig, EventPathMigErr, EventQPLastWQEReached:
		return ElementQP
	case EventSRQErr, EventSRQLimitReached:
		return ElementSRQ
	case EventWQFatal:
		return ElementWQ
	}
	return ElementPort
}
