//go:build linux && (amd64 || arm64)

package notif

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// pair is a pair of sockets that the test closes.
func pair(t *testing.T) [2]int {
	p := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { closeAll(p[:]) })
	return p
}

// duplicate sends the listener to another one.
func duplicate(t *testing.T, l *Listener) *Listener {
	sockets := pair(t)
	require.NoError(t, l.Send(sockets[0]))
	other := must.Get(Accept(sockets[1]))(t)
	require.Equal(t, l.Window, other.Window)
	return other
}

// TestHeld: a second listener knows the calls that the first has received and
// not answered, some of them before 10,000 others, and those only.
func TestHeld(t *testing.T) {
	p := run(t, "queue", "itself")
	require.NoError(t, p.Share())
	second := duplicate(t, p.Listener)
	kept := map[uint64]Notification{}
	p.serve(t, func(n *Notification) {
		switch {
		case n.Args[2] == keep:
			kept[n.ID] = *n
			return
		case n.Args[2] == pass || len(kept) < queue:
			require.NoError(t, p.Value(n.ID, 0))
			return
		}
		kept[n.ID] = *n
		held := second.Held()
		require.Len(t, held, len(kept))
		for _, h := range held {
			require.Equal(t, kept[h.ID], h)
			require.NoError(t, second.Value(h.ID, 1))
		}
		require.Empty(t, second.Held())
	})
	require.Len(t, kept, queue+1)
	require.Equal(t, "0", p.line(t), "wrong answers")
	require.NoError(t, second.Close())
}

// TestAnswerAfterClose: an answer that comes when the program has ended, and
// its listener is closed, reaches neither the journal nor another file.
func TestAnswerAfterClose(t *testing.T) {
	p := run(t, "held", "itself")
	require.NoError(t, p.Share())
	late := duplicate(t, p.Listener)
	p.serve(t, func(n *Notification) {
		if late.Valid(n.ID) {
			require.NoError(t, late.Value(n.ID, 0))
			require.NoError(t, late.Close())
		} else {
			require.NoError(t, p.Value(n.ID, 0))
		}
		require.ErrorIs(t, late.Value(n.ID, 0), unix.ENOENT)
		must.Fail(late.Add(n.ID, 0, -1, true))(t, unix.ENOENT)
		require.False(t, late.Valid(n.ID))
	})
}

// TestHeldInTheLastInstant: a receiver may end before it has noted the call.
func TestHeldInTheLastInstant(t *testing.T) {
	p := run(t, "held", "itself")
	require.NoError(t, p.Share())
	p.serve(t, func(n *Notification) {
		p.journal.remove(n.ID)
		p.journal.table.last.Store(n.ID - 3) // two callers were killed
		require.Equal(t, []Notification{{ID: n.ID, NR: -1}}, p.Held())
		require.NoError(t, p.Value(n.ID, 0))
		require.Empty(t, p.Held())
	})
}

// TestJournalFull: calls beyond the room are not noted, and a row of a call
// that ended otherwise is used again.
func TestJournalFull(t *testing.T) {
	p := run(t, "held", "itself")
	require.NoError(t, p.Share())
	p.serve(t, func(n *Notification) {
		for i := range p.journal.table.rows {
			p.journal.table.rows[i].id.CompareAndSwap(0, n.ID)
		}
		other := Notification{ID: n.ID + 1<<20}
		p.journal.add(p.Listener, &other) // no room, and no harm
		require.NotEqual(t, other.ID, p.journal.row(other.ID, 0).id.Load())
		require.NoError(t, p.Value(n.ID, 0))
		p.journal.add(p.Listener, &other)
		require.Equal(t, other.ID, p.journal.row(other.ID, 0).id.Load())
	})
}

// TestAcceptRefuses: what is no listener, and memory that its sender could
// shorten, is an error.
func TestAcceptRefuses(t *testing.T) {
	memory := func(size int64, seals int) int {
		fd := must.Get(unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING))(t)
		require.NoError(t, unix.Ftruncate(fd, size))
		must.Get(unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals))(t)
		return fd
	}
	sockets := pair(t)
	unsealed, short, good := memory(int64(tableSize), unix.F_SEAL_GROW), memory(4096, unix.F_SEAL_SHRINK), memory(int64(tableSize), unix.F_SEAL_SHRINK)
	defer closeAll([]int{unsealed, short, good})
	message := make([]byte, 12)
	for _, fds := range [][]int{nil, {good, unsealed}, {good, short}, {good, good, good}} {
		require.NoError(t, Send(sockets[0], message, fds...))
		must.Fail(Accept(sockets[1]))(t, unix.EPROTO)
	}
	require.NoError(t, Send(sockets[0], message[:3], good))
	must.Fail(Accept(sockets[1]))(t, unix.EPROTO)
	require.NoError(t, Refuse(sockets[0], ErrBusy))
	must.Fail(Accept(sockets[1]))(t, ErrBusy)
	require.NoError(t, Send(sockets[0], message, good, good))
	l := must.Get(Accept(sockets[1]))(t)
	require.NoError(t, l.Close())
}

// TestVerbsIoctl: the table's request is the ABI's.
func TestVerbsIoctl(t *testing.T) { require.EqualValues(t, abi.RDMAVerbsIoctl, rdmaVerbsIoctl) }
