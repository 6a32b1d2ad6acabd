package abi

// ElementKind is the kind of object that AsyncEvent.Element names.
type ElementKind uint8

// Values of ElementKind.
const (
	ElementPort ElementKind = iota // a port's number
	ElementCQ
	ElementQP
	ElementSRQ
	ElementWQ
)

// Element returns the kind of object that AsyncEvent.Element names in an event
// of this type.
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
