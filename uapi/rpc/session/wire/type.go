package wire

import "fmt"

// Type is the type of a message.
type Type uint8

const (
	Request      Type = 1  // starts a unary call
	Reply        Type = 2  // answers a unary call
	Cancel       Type = 3  // asks the server to end the call of a slot and sequence
	StreamOpen   Type = 4  // starts a stream
	StreamData   Type = 5  // is a message of a stream
	StreamHalf   Type = 6  // ends the client's messages
	StreamEnd    Type = 7  // ends a stream: the server's answer; then the client's, with nothing in it
	StreamWindow Type = 8  // lets the peer send more on a stream
	Taken        Type = 10 // ends the loan of the call's oldest offered body
	GoAway       Type = 11 // asks the client to begin no calls on this session
	Void         Type = 12 // stands for a call that the client will not repeat
)

// Flags say which parts a message has.
type Flags uint8

const (
	Define  Flags = 1  // the method's name follows the header
	Offered Flags = 2  // an Offer stands in place of the body
	Error   Flags = 8  // a status follows the metadata
	Bare    Flags = 16 // there is no body, which differs from an empty one
	Session Flags = 32 // the status is the session's own, not the handler's
)

// Codes of the session's own statuses, numbered as gRPC's.
const (
	Cancelled         = 1  // by VOID or CANCEL
	ResourceExhausted = 8  // a stream was sent more than its window
	Unavailable       = 14 // going away, not executed; or a stream whose connection broke
	DataLoss          = 15 // executed, and its reply was not kept
)

// bodyForm says what a type's body is.
type bodyForm uint8

const (
	noBody bodyForm = iota
	bytesBody
	windowBody
)

// layout is the fields that a type may carry besides slot and sequence.
type layout struct {
	name     string
	flags    Flags
	call     bool // method and timeout
	stream   bool // a stream's number
	metadata bool
	body     bodyForm
}

var layouts = [...]layout{
	Request:      {name: "REQUEST", flags: Define | Offered, call: true, metadata: true, body: bytesBody},
	Reply:        {name: "REPLY", flags: Offered | Error | Bare | Session, metadata: true, body: bytesBody},
	Cancel:       {name: "CANCEL"},
	StreamOpen:   {name: "STREAM_OPEN", flags: Define, call: true, stream: true, metadata: true},
	StreamData:   {name: "STREAM_DATA", flags: Offered | Bare, stream: true, metadata: true, body: bytesBody},
	StreamHalf:   {name: "STREAM_HALF", stream: true},
	StreamEnd:    {name: "STREAM_END", flags: Error | Session, stream: true, metadata: true},
	StreamWindow: {name: "STREAM_WINDOW", stream: true, body: windowBody},
	Taken:        {name: "TAKEN", stream: true},
	GoAway:       {name: "GOAWAY"},
	Void:         {name: "VOID"},
}

// String is the type's name.
func (t Type) String() string {
	if l := t.layout(); l != nil {
		return l.name
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// layout returns the row of a type, nil if it has none.
func (t Type) layout() *layout {
	if int(t) >= len(layouts) || layouts[t].name == "" {
		return nil
	}
	return &layouts[t]
}
