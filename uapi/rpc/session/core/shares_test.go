package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// TestShares: n addresses that take all they can leave 1/(n+1) for the next, to
// one place each; what is given back can be taken again, and nothing is left
// behind.
func TestShares(t *testing.T) {
	const total = 1200
	s := NewShares(total)
	var all []*Share
	for n := int64(1); n <= 10; n++ {
		h := s.Join(Address{byte(n)})
		all = append(all, h)
		for again := true; again; { // the others take what they may, too
			again = false
			for _, h := range all {
				again = s.Take(h, 1) || again
			}
		}
		require.GreaterOrEqual(t, s.Left(), total/(n+1)-n)
		require.Positive(t, h.held)
		require.False(t, s.Take(h, s.Left()))
		for _, h := range all {
			s.Give(h, h.held)
		}
		require.EqualValues(t, total, s.Left())
	}
	require.True(t, s.Take(all[0], 5))
	for _, h := range all {
		s.Leave(h)
	}
	require.Len(t, s.by, 1, "what holds places")
	s.Give(all[0], 5)
	require.Empty(t, s.by)
}

// TestKeptRepliesAreShared: a session whose client takes no answers does not
// push out those of others.
func TestKeptRepliesAreShared(t *testing.T) {
	s := NewServer(ServerConfig{Kept: 1000})
	connect := func(id byte) *Session {
		must.Get(s.Admit(Address{id}, [16]byte{id}, 1, 256))(t)
		x := must.Get(s.Connect(Address{id}, [16]byte{id}, 1, nil))(t)
		s.Leave([16]byte{id})
		return x
	}
	answer := func(x *Session, slot uint16, bytes int) {
		m := wire.Message{Type: wire.Request, Flags: wire.Define, Name: []byte("m"), Slot: slot, Sequence: 1}
		e := must.Get(x.Receive(1, &m))(t)
		require.Equal(t, Execute, e.Kind)
		x.Finish(slot, &Reply{Body: make([]byte, bytes)})
	}
	honest, hostile, third := connect(1), connect(2), connect(3)
	answer(honest, 0, 100)
	for slot := range uint16(200) {
		answer(hostile, slot, 90)
	}
	answer(third, 0, 100)
	require.EqualValues(t, 100, honest.kept)
	require.EqualValues(t, 100, third.kept)
	require.EqualValues(t, 450, hostile.kept, "as much as is left beside")
	require.EqualValues(t, 650, s.Kept())
}
