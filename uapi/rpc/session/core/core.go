package core

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// Time is nanoseconds on a monotonic clock of the caller's choice.
type Time int64

const second = Time(1_000_000_000)

// Limits of the protocol.
const (
	MaxSlots       = 4096        // of a session
	MaxMethods     = 256         // numbered on a connection; the names of others are sent with each call
	WindowBytes    = 64 << 10    // metadata and bodies that a stream's end may have sent and its peer not consumed
	WindowMessages = 16          // the same in messages
	CopyLimit      = 512         // a slot keeps a buffer of so many bytes for the next reply
	DefaultSlots   = 256         // of a session
	MaxSessions    = 4096        // of a server
	MaxKept        = 1 << 30     // bytes of replies that a server keeps
	SessionKept    = 16 << 20    // bytes of replies that a session keeps
	Lifetime       = 60 * second // of a session without a connection
)

// SessionState is the fate of the session that a client asked for. The numbers
// are those of a message ring's hello.
type SessionState uint8

const (
	New     SessionState = 1
	Resumed SessionState = 2
	Unknown SessionState = 3 // a new one under the same id
)

// Slab is the caller's name for a piece of registered memory; 0 is none. A slab
// belongs to its call until Freed returns it, whether the call was cancelled or
// not: the peer may be reading it.
type Slab uint64

// Send is a message to post now, on the present connection, in the order in
// which messages are taken from the core. Its slices are valid until the next
// call. With a Slab the caller fills in the offer's address and key, which
// belong to the connection.
type Send struct {
	wire.Message
	Slab Slab
}

// Kind says what an event asks of the caller.
type Kind uint8

const (
	None Kind = iota
	// Answered ends a unary call with Message, a REPLY. After Fetched the
	// Message is the one that came with Fetch.
	Answered
	// EndedUnknown ends a call that was posted, and whose fate cannot be known.
	EndedUnknown
	// NotPosted takes the slot from a call that was never posted: it may begin
	// again.
	NotPosted
	// Broken ends a stream whose connection broke. Abandon gives its slot back,
	// as after StreamEnded.
	Broken
	// StreamEnded ends a stream with Message, a STREAM_END: its status and
	// trailers.
	StreamEnded
	// GoneAway says that Begin gives no slots until the next connection.
	GoneAway

	// Execute starts the handler of a unary call. After Fetched the Message is
	// the one that came with Fetch.
	Execute
	// Open starts the handler of a stream.
	Open
	// CancelHandler asks the slot's handler to end. Finish follows all the
	// same.
	CancelHandler

	// Fetch asks for a READ of Message's offer, and Fetched when it is
	// complete.
	Fetch
	// StreamMessage is a STREAM_DATA, or a STREAM_HALF, for the stream's
	// reader, and Consumed when it was read. After Fetched it is the oldest one
	// of the stream that is being fetched.
	StreamMessage
	// StreamRoom says that the stream's writer may try again.
	StreamRoom
)

// Event is the consequence of a message, or of a connection's end, for a call.
type Event struct {
	Kind    Kind
	Slot    uint16
	Message *wire.Message
	Method  string // of Execute and Open
}

// Refusals of [Server.Admit].
var (
	// ErrBusy is a server without room for another session.
	ErrBusy = fmt.Errorf("rpc session: the server has no room for another session; dial again later: %w", syscall.EAGAIN)
	// ErrStale is an epoch that is not above the session's.
	ErrStale = fmt.Errorf("rpc session: the session went on with a later epoch; dial with a higher one: %w", syscall.ESTALE)
	// ErrSlots is a number of slots that no session has.
	ErrSlots = fmt.Errorf("rpc session: the number of slots is 1 … %d, and a session that goes on keeps its own: %w", MaxSlots, syscall.EINVAL)
	// ErrStreamOver is a stream on which nothing more can be sent.
	ErrStreamOver = fmt.Errorf("rpc session: the stream's sending side has ended: %w", syscall.EPIPE)
)
