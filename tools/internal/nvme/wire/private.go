package wire

// PrivateSize is how many bytes requests and acceptances of connections carry.
const PrivateSize = 32

// ConnRequest is the private data by which a host asks for a queue pair.
type ConnRequest struct {
	Format   uint16 // 0
	Queue    uint16 // 0: the admin queue
	HostRecv uint16 // responses that the host has room for
	HostSend uint16 // commands that it may have outstanding, less one
}

// ParseConnRequest reads the private data of a request.
func ParseConnRequest(b []byte) (ConnRequest, error) {
	if len(b) < PrivateSize {
		return ConnRequest{}, short("a connection request", len(b), PrivateSize)
	}
	return ConnRequest{le.Uint16(b), le.Uint16(b[2:]), le.Uint16(b[4:]), le.Uint16(b[6:])}, nil
}

// Append appends the private data.
func (r ConnRequest) Append(b []byte) []byte {
	for _, v := range []uint16{r.Format, r.Queue, r.HostRecv, r.HostSend} {
		b = le.AppendUint16(b, v)
	}
	return append(b, make([]byte, PrivateSize-8)...)
}

// AppendConnReply appends the private data of an acceptance: how many commands
// the target has room for.
func AppendConnReply(b []byte, room uint16) []byte {
	b = le.AppendUint16(le.AppendUint16(b, 0), room)
	return append(b, make([]byte, PrivateSize-4)...)
}

// Refusal is why a target refuses a connection.
type Refusal uint16

const (
	RefusedFormat   Refusal = 2
	RefusedQueue    Refusal = 3
	RefusedHostSend Refusal = 4
	RefusedHostRecv Refusal = 5
	RefusedNoRoom   Refusal = 6
)

var refusals = map[Refusal]string{
	1: "length of the private data", RefusedFormat: "format of the private data", RefusedQueue: "number of the queue",
	RefusedHostSend: "depth of the host's send queue", RefusedHostRecv: "depth of the host's receive queue",
	RefusedNoRoom: "no room", 7: "READs that the host answers", 8: "READs that the host asks for",
}

// String says why in words.
func (r Refusal) String() string { return name(refusals, r) }

// ParseRefusal reads the private data of a rejection.
func ParseRefusal(b []byte) (Refusal, error) {
	if len(b) < 4 {
		return 0, short("a rejection", len(b), 4)
	}
	return Refusal(le.Uint16(b[2:])), nil
}

// Append appends the private data.
func (r Refusal) Append(b []byte) []byte { return le.AppendUint16(le.AppendUint16(b, 0), uint16(r)) }
