package core

import (
	"fmt"
	"strings"
	"syscall"
)

// Refusal is why an end refuses a hello; the peer gets it in the private data
// of the connection manager's REJ. It Is EPROTONOSUPPORT (magic, version,
// mode), ECONNREFUSED (service), EAGAIN (busy), ESTALE (stale) or EINVAL.
type Refusal struct {
	Version uint8 // of the end that refuses
	Reason  Reason
	Text    string // at most MaxRefusalText bytes of UTF-8
}

// Reason is why, as a number on the wire.
type Reason uint8

const (
	ReasonMagic   Reason = 1
	ReasonVersion Reason = 2
	ReasonMode    Reason = 3
	ReasonService Reason = 4
	ReasonLimits  Reason = 5
	ReasonBusy    Reason = 6 // too many sessions
	ReasonStale   Reason = 7 // the session went on with a later epoch
	ReasonSlots   Reason = 8
)

var reasons = map[Reason]struct {
	name  string
	errno syscall.Errno
}{
	ReasonMagic:   {"magic", syscall.EPROTONOSUPPORT},
	ReasonVersion: {"version", syscall.EPROTONOSUPPORT},
	ReasonMode:    {"mode", syscall.EPROTONOSUPPORT},
	ReasonService: {"service", syscall.ECONNREFUSED},
	ReasonLimits:  {"limits", syscall.EINVAL},
	ReasonBusy:    {"busy", syscall.EAGAIN},
	ReasonStale:   {"stale", syscall.ESTALE},
	ReasonSlots:   {"slots", syscall.EINVAL},
}

// String is the reason's name.
func (r Reason) String() string {
	if known, ok := reasons[r]; ok {
		return known.name
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// MaxRefusalText is the room for a refusal's text, in bytes: the connection
// manager's 148 less the header.
const MaxRefusalText = 148 - refusalHeader

const refusalHeader = 6 // "RDMS", version, reason

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Version: Version, Reason: reason, Text: fmt.Sprintf(format, args...)}
}

// Error is the reason and the text.
func (r *Refusal) Error() string {
	return fmt.Sprintf("hello refused (%s): %s", r.Reason, r.Text)
}

// Unwrap is the errno of the reason.
func (r *Refusal) Unwrap() error {
	if known, ok := reasons[r.Reason]; ok {
		return known.errno
	}
	return syscall.EINVAL
}

// Append appends the refusal to b; a longer text is cut.
func (r *Refusal) Append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, r.Version, byte(r.Reason))
	return append(b, strings.ToValidUTF8(r.Text[:min(len(r.Text), MaxRefusalText)], "")...)
}

// ParseRefusal reads the private data of a rejection, behind which the
// connection manager puts zeroes. It returns false for a rejection that is not
// of this protocol.
func ParseRefusal(b []byte) (*Refusal, bool) {
	if len(b) < refusalHeader || string(b[:4]) != magic {
		return nil, false
	}
	text := b[refusalHeader:min(len(b), refusalHeader+MaxRefusalText)]
	return &Refusal{
		Version: b[4],
		Reason:  Reason(b[5]),
		Text:    strings.ToValidUTF8(strings.TrimRight(string(text), "\x00"), ""),
	}, true
}
