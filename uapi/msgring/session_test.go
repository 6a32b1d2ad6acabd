package msgring_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// TestSession: a dialer asks for a session, the acceptor decides before the
// connection is made, and both ends learn what the other one said.
func TestSession(t *testing.T) {
	asked := msgring.Session{ID: [16]byte{1, 2, 3}, Epoch: 7, Slots: 64}
	answer := msgring.Session{Slots: 32, Instance: 1 << 40, Lifetime: 60, State: msgring.SessionResumed}
	refuse := func(reason msgring.Reason) func(msgring.Session) (msgring.Session, error) {
		return func(msgring.Session) (msgring.Session, error) {
			return answer, &msgring.Refusal{Reason: reason, Text: "because"}
		}
	}
	own := errors.New("the program's own")
	for _, c := range []struct {
		name     string
		asked    msgring.Session
		admit    func(msgring.Session) (msgring.Session, error)
		dialer   error // what Dial's error Is
		acceptor error // what Accept's error Is
		reason   msgring.Reason
	}{
		{name: "taken", asked: asked, admit: func(got msgring.Session) (msgring.Session, error) {
			if got != asked {
				return msgring.Session{}, errors.New("another session was asked for")
			}
			return answer, nil
		}},
		{"busy", asked, refuse(msgring.ReasonBusy), syscall.EAGAIN, syscall.EAGAIN, msgring.ReasonBusy},
		{"stale", asked, refuse(msgring.ReasonStale), syscall.ESTALE, syscall.ESTALE, msgring.ReasonStale},
		{"slots", asked, refuse(msgring.ReasonSlots), syscall.EINVAL, syscall.EINVAL, msgring.ReasonSlots},
		{"another error", asked, func(msgring.Session) (msgring.Session, error) { return answer, own }, uapi.ErrRefused, own, 0},
		{"no state", asked, func(msgring.Session) (msgring.Session, error) { return msgring.Session{}, nil }, uapi.ErrRefused, syscall.EINVAL, 0},
		{name: "no sessions here", asked: asked, dialer: syscall.EPROTO},
		{name: "nobody asks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, l := uapitest.Listen(t, "")
				accepted := make(chan error, 1)
				var b *msgring.Conn
				go func() {
					request, err := l.Accept(context.Background())
					if err == nil {
						b, err = msgring.Accept(context.Background(), request, msgring.Config{Mode: msgring.Messages, Admit: c.admit})
					}
					accepted <- err
				}()
				a, err := msgring.Dial(context.Background(), x, l.Addr().String(), msgring.Config{Mode: msgring.Messages, Session: c.asked})
				acceptErr := <-accepted
				if acceptErr == nil {
					defer b.CloseContext(context.Background())
				}
				if c.dialer != nil {
					require.ErrorIs(t, err, c.dialer)
				} else {
					require.NoError(t, err)
					defer a.CloseContext(context.Background())
				}
				if c.acceptor != nil {
					require.ErrorIs(t, acceptErr, c.acceptor)
				}
				if c.reason != 0 {
					var told *msgring.Refusal
					require.ErrorAs(t, err, &told)
					require.Equal(t, msgring.Refusal{Version: msgring.Version, Reason: c.reason, Text: "because"}, *told)
				}
				if c.dialer == nil && c.acceptor == nil {
					require.NoError(t, acceptErr)
					require.Equal(t, c.asked, b.PeerSession())
					if c.admit != nil {
						require.Equal(t, answer, a.PeerSession())
					} else {
						require.Zero(t, a.PeerSession())
					}
				}
			})
		})
	}
}
