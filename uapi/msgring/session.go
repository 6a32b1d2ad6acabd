package msgring

import (
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// Session is a hello's part on the RPC session that a connection of Messages
// belongs to. A dialer asks with ID, Epoch and Slots; the acceptor answers with
// Slots, Instance, Lifetime and State, and the other two are zero.
type Session struct {
	ID    [16]byte
	Epoch uint32 // of the attempt to connect
	Slots uint16

	Instance uint64       // of the server
	Lifetime uint32       // of a session without a connection, in seconds
	State    SessionState // the fate of the session that was asked for
}

// SessionState is the session's fate in an acceptor's answer.
type SessionState = core.SessionState

const (
	SessionNew     = core.SessionNew
	SessionResumed = core.SessionResumed
	SessionUnknown = core.SessionUnknown // a new one under the same id
)

// Reasons for which Config.Admit refuses a session.
const (
	ReasonBusy  = core.ReasonBusy  // too many sessions: EAGAIN
	ReasonStale = core.ReasonStale // the session has a later epoch: ESTALE
	ReasonSlots = core.ReasonSlots // no such number of slots: EINVAL
)

// PeerSession returns what the peer's hello said: of an acceptor's connection
// the question, of a dialer's the answer. It is zero for Bytes.
func (c *Conn) PeerSession() Session { return sessionOf(&c.peer) }

func sessionOf(h *core.Hello) Session {
	return Session{
		ID: h.Session, Epoch: h.Epoch, Slots: h.Slots,
		Instance: h.Instance, Lifetime: h.Lifetime, State: h.State,
	}
}

// fillHello puts the session into a hello.
func (s *Session) fillHello(h *core.Hello) {
	h.Session, h.Epoch, h.Slots = s.ID, s.Epoch, s.Slots
	h.Instance, h.Lifetime, h.State = s.Instance, s.Lifetime, s.State
}

// decide asks Admit, if there is one, for the answer to a request.
func (c *Config) decide(request *core.Hello) error {
	if c.Admit == nil {
		return nil
	}
	answer, err := c.Admit(sessionOf(request))
	if err == nil && (answer.State < SessionNew || answer.State > SessionUnknown) {
		err = fmt.Errorf("msgring: Config.Admit returned a session in state %d; make it SessionNew, SessionResumed or SessionUnknown: %w", answer.State, syscall.EINVAL)
	}
	answer.ID, answer.Epoch = [16]byte{}, 0
	c.Session = answer
	return err
}

// answered checks the answer to the session that the dialer asked for.
func (s *Session) answered(answer *core.Hello) error {
	if s.ID != [16]byte{} && (answer.State < SessionNew || answer.State > SessionUnknown) {
		return fmt.Errorf("state %d of a session; the peer keeps none", answer.State)
	}
	return nil
}
