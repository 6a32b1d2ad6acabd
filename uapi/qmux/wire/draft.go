package wire

import "bytes"

// Draft is the number of a version of draft-ietf-quic-qmux. The application
// protocol agrees on it; nothing on the wire says it.
type Draft uint8

// The drafts that are spoken. Draft3 is a proposal, of which the magic alone is
// known.
const (
	Draft1 Draft = 1
	Draft2 Draft = 2
	Draft3 Draft = 3
)

// draftFacts tells the drafts apart. Everything else is the same in all.
var draftFacts = [...]struct {
	magic         FrameType
	misuse        Code // of the frame that carries the parameters
	resetStreamAt bool
	strictPing    bool // the sequence of requests must rise
}{
	Draft1: {TypeParameters, TransportParameterError, false, false},
	Draft2: {TypeParameters, ProtocolViolation, true, true},
	Draft3: {TypeParameters3, ProtocolViolation, true, true},
}

// Valid reports whether the draft is spoken here.
func (d Draft) Valid() bool { return d >= Draft1 && int(d) < len(draftFacts) }

// Parameters is the type of the frame that carries a sender's parameters. Its
// bytes open the connection ("magic"). A receiver accepts those of all drafts,
// see [FrameType.IsParameters].
func (d Draft) Parameters() FrameType { return draftFacts[d].magic }

// Misuse is the code that closes a connection whose first frame does not carry
// parameters, or that carries them twice.
func (d Draft) Misuse() Code { return draftFacts[d].misuse }

// ResetStreamAt reports whether the draft permits RESET_STREAM_AT.
func (d Draft) ResetStreamAt() bool { return draftFacts[d].resetStreamAt }

// StrictPing reports whether a QX_PING request whose sequence does not rise is
// a PROTOCOL_VIOLATION.
func (d Draft) StrictPing() bool { return draftFacts[d].strictPing }

// Opens reports whether b may be the first bytes of a sender of QMux, of any
// draft: a record that begins with parameters. sure is false while b is too
// short to tell, 16 bytes at most.
func Opens(b []byte) (ok, sure bool) {
	_, k := ParseVarint(b)
	if k == 0 {
		return true, false
	}
	for _, d := range []Draft{Draft2, Draft3} {
		magic := AppendVarint(nil, uint64(d.Parameters()))
		if n := min(len(magic), len(b)-k); bytes.Equal(magic[:n], b[k:k+n]) {
			return true, n == len(magic)
		}
	}
	return false, true
}
