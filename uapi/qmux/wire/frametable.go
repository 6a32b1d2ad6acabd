package wire

// field is a varint of a frame: where it goes in the [Frame].
type field uint8

const (
	stream field = iota
	offset
	code
	trigger
	finalSize
	reliableSize
	limit
	sequence
)

// dataForm says which bytes end a frame.
type dataForm uint8

const (
	noData  dataForm = iota
	toEnd            // all that is left of the record
	counted          // a length, and so many bytes
)

// layout is the fields that follow a type on the wire, in this order.
type layout struct {
	name      string
	fields    fields
	data      dataForm
	check     func(*Frame) error
	forbidden bool
}

// fields is short for the slice in a layout.
type fields = []field

// The places of types in tables: those of one byte stand at their number, the
// others behind them.
const (
	pingPlace = 0x32 + iota
	pongPlace
	parametersPlace
	unknownPlace
	places
)

// layouts has the frames by their place; gaps are unknown. The forbidden ones
// have their names only.
var layouts = [places]layout{
	0x00: {name: "PADDING"},
	0x01: {name: "PING", forbidden: true},
	0x02: {name: "ACK", forbidden: true},
	0x03: {name: "ACK", forbidden: true},
	0x04: {name: "RESET_STREAM", fields: fields{stream, code, finalSize}},
	0x05: {name: "STOP_SENDING", fields: fields{stream, code}},
	0x06: {name: "CRYPTO", forbidden: true},
	0x07: {name: "NEW_TOKEN", forbidden: true},
	0x08: {name: "STREAM", fields: fields{stream}, data: toEnd},
	0x09: {name: "STREAM", fields: fields{stream}, data: toEnd},
	0x0a: {name: "STREAM", fields: fields{stream}, data: counted},
	0x0b: {name: "STREAM", fields: fields{stream}, data: counted},
	0x0c: {name: "STREAM", fields: fields{stream, offset}, data: toEnd, check: (*Frame).checkOffset},
	0x0d: {name: "STREAM", fields: fields{stream, offset}, data: toEnd, check: (*Frame).checkOffset},
	0x0e: {name: "STREAM", fields: fields{stream, offset}, data: counted, check: (*Frame).checkOffset},
	0x0f: {name: "STREAM", fields: fields{stream, offset}, data: counted, check: (*Frame).checkOffset},
	0x10: {name: "MAX_DATA", fields: fields{limit}},
	0x11: {name: "MAX_STREAM_DATA", fields: fields{stream, limit}},
	0x12: {name: "MAX_STREAMS_BIDI", fields: fields{limit}, check: (*Frame).checkStreams},
	0x13: {name: "MAX_STREAMS_UNI", fields: fields{limit}, check: (*Frame).checkStreams},
	0x14: {name: "DATA_BLOCKED", fields: fields{limit}},
	0x15: {name: "STREAM_DATA_BLOCKED", fields: fields{stream, limit}},
	0x16: {name: "STREAMS_BLOCKED_BIDI", fields: fields{limit}, check: (*Frame).checkStreams},
	0x17: {name: "STREAMS_BLOCKED_UNI", fields: fields{limit}, check: (*Frame).checkStreams},
	0x18: {name: "NEW_CONNECTION_ID", forbidden: true},
	0x19: {name: "RETIRE_CONNECTION_ID", forbidden: true},
	0x1a: {name: "PATH_CHALLENGE", forbidden: true},
	0x1b: {name: "PATH_RESPONSE", forbidden: true},
	0x1c: {name: "CONNECTION_CLOSE", fields: fields{code, trigger}, data: counted},
	0x1d: {name: "APPLICATION_CLOSE", fields: fields{code}, data: counted},
	0x1e: {name: "HANDSHAKE_DONE", forbidden: true},
	0x24: {name: "RESET_STREAM_AT", fields: fields{stream, code, finalSize, reliableSize}, check: (*Frame).checkReliable},
	0x30: {name: "DATAGRAM", data: toEnd},
	0x31: {name: "DATAGRAM", data: counted},

	pingPlace:       {name: "QX_PING", fields: fields{sequence}},
	pongPlace:       {name: "QX_PONG", fields: fields{sequence}},
	parametersPlace: {name: "QX_TRANSPORT_PARAMETERS", data: counted},
}

// place is where a type stands in tables.
func (t FrameType) place() int {
	switch {
	case t < pingPlace:
		return int(t)
	case t == TypePing:
		return pingPlace
	case t == TypePong:
		return pongPlace
	case t.IsParameters():
		return parametersPlace
	}
	return unknownPlace
}

// layout returns the row of a type, nil if it has none.
func (t FrameType) layout() *layout {
	if l := &layouts[t.place()]; l.name != "" {
		return l
	}
	return nil
}
