package wire

import "encoding/binary"

// idsLen is the length of the two communication identifiers with which every
// message of a connection but a REQ begins.
const idsLen = 8

// CommIDs are the identifiers of the sender and of the receiver of a message.
type CommIDs struct {
	LocalCommID  CommID
	RemoteCommID CommID
}

// Parse reads the identifiers at the beginning of any message of a connection
// but a REQ. The error is ErrShort or nil.
func (c *CommIDs) Parse(b []byte) error {
	if len(b) < idsLen {
		return ErrShort
	}
	c.LocalCommID = CommID(binary.BigEndian.Uint32(b))
	c.RemoteCommID = CommID(binary.BigEndian.Uint32(b[4:]))
	return nil
}

func (c *CommIDs) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(c.LocalCommID))
	return binary.BigEndian.AppendUint32(b, uint32(c.RemoteCommID))
}

// CMAbout says in an MRA or a REJ which message it is about.
type CMAbout uint8

const (
	AboutREQ   CMAbout = 0
	AboutREP   CMAbout = 1
	AboutOther CMAbout = 2 // MRA: LAP; REJ: none
)

// String returns "REQ", "REP" or "other".
func (a CMAbout) String() string { return [...]string{"REQ", "REP", "other", "other"}[a&3] }
