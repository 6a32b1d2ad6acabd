//go:build guest && linux

package interop

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestSharedLimit: two queue pairs on one side share receives, and that side is
// told when too few are left, once each time that it asked; the other side
// sends.
func TestSharedLimit(t *testing.T) {
	for _, holder := range []string{"soft", "rxe"} {
		t.Run(holder, func(t *testing.T) {
			soft := newDevice(t, "soft", openSoft(t, softName(families[1], 0, "")), 1<<14)
			rxe := newDevice(t, "rxe", openRXE(t, families[1]), 1<<14)
			if holder == "soft" {
				sharedLimit(t, soft, rxe)
			} else {
				sharedLimit(t, rxe, soft)
			}
		})
	}
}

func sharedLimit(t *testing.T, holder, peer *device) {
	d := holder.device
	events := d.Events(wait(t))
	srq := must.Get(d.CreateSRQ(uapi.SRQConfig{Depth: 8, Limit: 2}))(t)
	t.Cleanup(func() { require.NoError(t, d.DestroySRQ(srq)) })
	var takers, senders [2]*end
	for i := range takers {
		takers[i], senders[i] = holder.newEnd(t, uapi.QPConfig{SRQ: srq}), peer.newEnd(t, uapi.QPConfig{})
		connect(t, takers[i], senders[i])
	}
	const size = 3000
	posted, sent := 0, 0
	offer := func() {
		at := uint64(len(holder.mem)/2 + posted*size)
		must.Get(d.PostSRQ(srq, []uapi.WR{{ID: uapi.WRID(posted), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: holder.mr, Offset: at, Length: size}}}}))(t)
		posted = (posted + 1) % 2
	}
	send := func() {
		from, to := senders[sent%2], takers[sent%2]
		want := pattern(size)
		copy(from.source(), want)
		from.post(t, uapi.WR{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: from.mr, Length: size}}})
		wc := to.success(t, uapi.WCOpRecv)
		require.EqualValues(t, sent%2, wc.WRID)
		require.True(t, bytes.Equal(want, to.target()[int(wc.WRID)*size:][:size]))
		from.success(t, uapi.WCOpSend)
		count(1, size)
		sent++
	}
	limit := func() int {
		info := must.Get(d.QuerySRQ(srq))(t)
		return info.Limit
	}
	told := func() {
		require.Zero(t, limit(), "the limit is not used up")
		e := <-events
		require.Equal(t, []any{uapi.EventSRQLimitReached, srq, 0}, []any{e.Type, e.SRQ, e.Lost})
	}
	for range 4 {
		offer()
	}
	send()
	send()
	require.Equal(t, 2, limit(), "two are left, which is not too few")
	send()
	told()
	offer()
	require.NoError(t, d.SetSRQLimit(srq, 1))
	send()
	require.Equal(t, 1, limit())
	send()
	told()
	select {
	case e := <-events:
		require.Fail(t, "an event too many", "%v", e)
	default:
	}
}
