package core

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// newTestEnd makes an open end with rings of 16 quanta of 1 KiB.
func newTestEnd() *End {
	ring := Layout{MinRing, 1 << 10}
	e := NewEnd(Config{Ring: ring, Longest: 4 << 10, Staging: Layout{MinRing, 64}, Slots: uint64(Slots(MinRing)), Controls: Controls})
	e.Open(ring, MaxChunk)
	return e
}

func control(t ControlType, consumed, argument uint64) []byte {
	m := Control{Type: t, Consumed: consumed, Argument: argument}
	return m.Append(nil)
}

// put posts a chunk of n bytes.
func (e *End) put(t *testing.T, n uint64) Post {
	t.Helper()
	_, got, err := e.Stage(n, true)
	require.NoError(t, err)
	require.Equal(t, n, got)
	p, ok, err := e.Commit(n)
	require.NoError(t, err)
	require.True(t, ok)
	e.Posted()
	return p
}

// TestHostilePeer: each breach of the protocol ends the connection with an
// error that says what the peer sent, and is answered with a RESET.
func TestHostilePeer(t *testing.T) {
	for _, c := range []struct {
		name, breach string
		prepare      func(e *End)
		send         func(e *End) error
	}{
		{"high bits of an immediate", "its two high bits", nil,
			func(e *End) error { return e.ReceiveData(1, 1<<30) }},
		{"credit for what was never sent", "a credit for 1024 bytes; 0 are outstanding", nil,
			func(e *End) error { return e.ReceiveData(1, 1) }},
		{"credit that goes back", "a credit for 1099511626752 bytes", nil,
			func(e *End) error { return e.ReceiveData(1, 1<<30-1) }},
		{"credit beyond what is outstanding", "a credit for 2048 bytes; 1024 are outstanding", func(e *End) { e.put(t, 1) },
			func(e *End) error { return e.ReceiveControl(control(CREDIT, 2048, 0)) }},
		{"credit within a quantum", "a credit to position 1023", func(e *End) { e.put(t, 1) },
			func(e *End) error { return e.ReceiveControl(control(CREDIT, 1023, 0)) }},
		{"control's credit goes back", "a credit to position 0 after one to 1024",
			func(e *End) {
				e.put(t, 1)
				require.NoError(t, e.ReceiveControl(control(CREDIT, 1024, 0)))
			},
			func(e *End) error { return e.ReceiveControl(control(CREDIT, 0, 0)) }},
		{"empty chunk", "a chunk of 0 bytes", nil,
			func(e *End) error { return e.ReceiveData(0, 0) }},
		{"long chunk", "a chunk of 4097 bytes", nil,
			func(e *End) error { return e.ReceiveData(4097, 0) }},
		{"chunk without credit", "without credit: it was told of 0 of 16384 bytes",
			func(e *End) {
				for range 4 {
					require.NoError(t, e.ReceiveData(4096, 0))
				}
			},
			func(e *End) error { return e.ReceiveData(1, 0) }},
		{"data behind FIN", "data behind its FIN", func(e *End) { require.NoError(t, e.ReceiveControl(control(FIN, 0, 0))) },
			func(e *End) error { return e.ReceiveData(1, 0) }},
		{"second FIN", "a second FIN", func(e *End) { require.NoError(t, e.ReceiveControl(control(FIN, 0, 0))) },
			func(e *End) error { return e.ReceiveControl(control(FIN, 0, 0)) }},
		{"FIN of another length", "a FIN after 6 bytes; 5 arrived", func(e *End) { require.NoError(t, e.ReceiveData(5, 0)) },
			func(e *End) error { return e.ReceiveControl(control(FIN, 0, 6)) }},
		{"control of 31 bytes", "a control message of 31 bytes", nil,
			func(e *End) error { return e.ReceiveControl(control(CREDIT, 0, 0)[:31]) }},
		{"unknown control", "unknown type 4", nil,
			func(e *End) error { return e.ReceiveControl(control(4, 0, 0)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newTestEnd()
			if c.prepare != nil {
				c.prepare(e)
			}
			err := c.send(e)
			require.ErrorContains(t, err, c.breach)
			require.ErrorIs(t, err, syscall.EPROTO)
			require.Equal(t, err, e.Writable())
			_, _, readable := e.Readable()
			require.Equal(t, err, readable)
			e.Posted()
			p, ok := e.TakeControl()
			require.True(t, ok)
			require.Equal(t, Control{Type: RESET, Consumed: e.in.consumed, Argument: uint64(ProtocolViolated)}, p.Control)
			e.Posted()
			_, ok = e.TakeControl()
			require.False(t, ok, "nothing goes behind a RESET")
		})
	}
}

// TestBeforeOpen: messages that the peer sends while the connection is being
// set up are kept, and credit for bytes never sent is a breach though the
// peer's ring is not known yet.
func TestBeforeOpen(t *testing.T) {
	ring := Layout{MinRing, 1 << 10}
	e := NewEnd(Config{Ring: ring, Longest: 4 << 10, Staging: Layout{MinRing, 64}, Slots: uint64(Slots(MinRing)), Controls: Controls})
	require.NoError(t, e.ReceiveData(5, 0))
	e.Discard(5)
	e.CloseWrite()
	_, ok := e.TakeControl()
	require.False(t, ok)
	e.Open(ring, 4<<10)
	p, ok := e.TakeControl()
	require.True(t, ok)
	require.Equal(t, Control{Type: FIN, Consumed: 1 << 10}, p.Control)

	e = NewEnd(Config{Ring: ring, Longest: 4 << 10, Staging: Layout{MinRing, 64}, Slots: uint64(Slots(MinRing)), Controls: Controls})
	require.ErrorContains(t, e.ReceiveData(5, 1), "a credit for 1 bytes; 0 are outstanding")
}

func TestClose(t *testing.T) {
	e := newTestEnd()
	e.put(t, 100)
	e.CloseWrite()
	require.ErrorIs(t, e.Writable(), syscall.EPIPE)
	_, _, err := e.Stage(1, false)
	require.ErrorIs(t, err, syscall.EPIPE)
	p, ok := e.TakeControl()
	require.True(t, ok)
	require.Equal(t, Control{Type: FIN, Argument: 100}, p.Control)
	require.True(t, p.Signal)
	e.Posted()
	require.False(t, e.Flushed())
	e.Complete(p.ID)
	require.True(t, e.Flushed())
	require.NoError(t, e.ReceiveData(7, 1), "the other direction goes on")
}

// TestReset: a RESET ends both directions behind what arrived before it. Behind
// a FIN it ends writing with EPIPE.
func TestReset(t *testing.T) {
	e := newTestEnd()
	require.NoError(t, e.ReceiveData(5, 0))
	require.NoError(t, e.ReceiveControl(control(RESET, 0, 99)), "an unknown code")
	data, eof, err := e.Readable()
	require.True(t, data && !eof && err == nil)
	e.Discard(5)
	_, _, err = e.Readable()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.ErrorIs(t, e.Writable(), syscall.ECONNRESET)
	require.True(t, e.Over())
	require.NoError(t, e.ReceiveData(0, 1<<31), "what comes behind it means nothing")

	e = newTestEnd()
	require.NoError(t, e.ReceiveControl(control(FIN, 0, 0)))
	require.NoError(t, e.ReceiveControl(control(RESET, 0, 0)))
	_, eof, err = e.Readable()
	require.True(t, eof && err == nil)
	require.ErrorIs(t, e.Writable(), syscall.EPIPE)

	e = newTestEnd()
	e.Reset(ClosedNoLinger)
	e.Reset(InternalError)
	p, ok := e.TakeControl()
	require.True(t, ok)
	require.Equal(t, Control{Type: RESET, Argument: uint64(ClosedNoLinger)}, p.Control)
	e.Posted()
	require.False(t, e.ResetFlushed())
	e.Complete(p.ID)
	require.True(t, e.ResetFlushed())
}

// TestLost: a send that failed ends writing only; a receive that failed ends
// reading behind the data that has arrived.
func TestLost(t *testing.T) {
	e := newTestEnd()
	e.LoseSending(syscall.ENOMEM)
	e.LoseSending(syscall.ENODEV)
	require.Equal(t, syscall.ENOMEM, e.Writable(), "the first reason stays")
	require.True(t, e.Lost())
	require.NoError(t, e.ReceiveData(5, 0))
	e.LoseBoth(syscall.ENODEV)
	data, eof, err := e.Readable()
	require.True(t, data && !eof && err == nil)
	e.Discard(5)
	_, _, err = e.Readable()
	require.Equal(t, syscall.ENODEV, err)

	e = newTestEnd()
	require.NoError(t, e.ReceiveControl(control(FIN, 0, 0)))
	e.LoseBoth(syscall.ENODEV)
	data, eof, err = e.Readable()
	require.True(t, !data && eof && err == nil, "the peer had said all")
}

// TestUndelivered: data is known to have arrived when the FIN or RESET behind
// it has, or when the peer has told that it read it. An end that closes tells
// so behind its FIN, too.
func TestUndelivered(t *testing.T) {
	e := newTestEnd()
	require.NoError(t, e.Undelivered(), "nothing was written")
	e.put(t, 1)
	require.Equal(t, syscall.EINPROGRESS, e.Undelivered())
	require.NoError(t, e.ReceiveControl(control(FIN, 1024, 0)))
	require.NoError(t, e.Undelivered())
	e.put(t, 1)
	e.LoseSending(syscall.ECONNRESET)
	require.ErrorIs(t, e.Undelivered(), syscall.EPIPE)
	require.False(t, e.Over(), "its own FIN is left")

	e = newTestEnd()
	e.CloseWrite()
	fin, _ := e.TakeControl()
	e.Posted()
	require.NoError(t, e.ReceiveData(5, 0))
	e.Discard(5)
	_, ok := e.TakeControl()
	require.False(t, ok, "a quantum is too little for a CREDIT")
	e.Close()
	e.Complete(fin.ID)
	require.False(t, e.Flushed())
	last, ok := e.TakeControl()
	require.True(t, ok && last.Signal)
	require.Equal(t, Control{Type: CREDIT, Consumed: 1024}, last.Control)
	e.Posted()
	require.False(t, e.Flushed())
	e.Complete(last.ID)
	require.True(t, e.Flushed())
}

func TestMessages(t *testing.T) {
	e := newTestEnd()
	_, _, err := e.Stage(0, true)
	require.ErrorIs(t, err, syscall.EINVAL)
	_, _, err = e.Stage(4097, true)
	require.ErrorIs(t, err, syscall.EMSGSIZE)
	_, n, err := e.Stage(4097, false)
	require.NoError(t, err)
	require.EqualValues(t, 4096, n, "bytes mode cuts it")
	require.EqualValues(t, 4096, e.Longest())
}

// TestStaleCompletion: the id of a request that is not outstanding means
// nothing.
func TestStaleCompletion(t *testing.T) {
	e := newTestEnd()
	p := e.put(t, 4096) // a quarter of the staging: signaled
	require.True(t, p.Signal)
	before := e.queue
	for _, id := range []uint64{1, 2, 1 << 63} {
		e.Complete(id)
		require.Equal(t, before, e.queue)
	}
	e.Complete(p.ID)
	require.EqualValues(t, 1, e.queue.done)
	e.Complete(p.ID)
	require.EqualValues(t, 1, e.queue.done)
}

// TestStagingStartsAgain: an end whose sends are all done takes the memory
// again that it used last; not below a chunk that is staged, nor below a
// request that is under way.
func TestStagingStartsAgain(t *testing.T) {
	e := newTestEnd()
	credit := uint64(0)
	for range 100 {
		var p Post
		for i := uint64(0); !p.Signal; i++ {
			p = e.put(t, 64)
			require.Equal(t, 64*i, p.Staged, "of the requests under way")
			credit += 1 << 10
		}
		require.NoError(t, e.ReceiveControl(control(CREDIT, credit, 0)))
		e.Complete(p.ID)
	}
	require.LessOrEqual(t, e.Lent(), uint64(64*Controls))

	var p Post
	for !p.Signal {
		p = e.put(t, 64)
	}
	staged, _, err := e.Stage(64, true)
	require.NoError(t, err)
	e.Complete(p.ID) // all is done, and a chunk is being filled
	p, ok, err := e.Commit(64)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, staged, p.Staged)
	require.NotZero(t, staged)
}
