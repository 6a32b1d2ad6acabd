//go:build guest && linux

package interop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// TestSharedPingpong lets ibv_srq_pingpong run on rxe against queue pairs of
// the soft RNIC that share their receives as well, as server and as client.
func TestSharedPingpong(t *testing.T) {
	for _, r := range programRuns()[:2] {
		t.Run(r.String(), func(t *testing.T) { sharedPingpong(t, r.family, r.mtu, r.role) })
	}
}

// sharedAddresses is how many addresses ibv_srq_pingpong exchanges, however
// many queue pairs it is asked for.
const sharedAddresses = 256

func sharedPingpong(t *testing.T, f family, mtu int, role string) {
	const pairs, iters, size, depth = 4, 40, 5000, 16
	d := newDevice(t, "soft", openSoft(t, softName(f, 0, "")), depth*size)
	srq := must.Get(d.ctx.CreateSRQ(uapi.SRQConfig{Depth: depth}))(t)
	t.Cleanup(func() { require.NoError(t, d.ctx.DestroySRQ(srq)) })
	target := func(i int) []byte { return d.mem[len(d.mem)/2:][i*size:][:size] }
	offer := func(i int) error {
		at := uint64(len(d.mem)/2 + i*size)
		_, err := d.ctx.PostSRQ(srq, []uapi.WR{{ID: uapi.WRID(i), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: d.mr, Offset: at, Length: size}}}})
		return err
	}
	empty := bytes.Repeat([]byte{untouched}, size)
	for i := range depth {
		copy(target(i), empty)
		require.NoError(t, offer(i))
	}
	echo := make([]byte, size) // as the program's buffer is
	copy(d.mem, echo)
	ends := make([]*end, pairs)
	for i := range ends {
		ends[i] = d.newEnd(t, uapi.QPConfig{MTU: mtu, SRQ: srq})
	}

	all := slices.Concat(ends, slices.Repeat(ends[pairs-1:], sharedAddresses-pairs))
	line := fmt.Sprintf("-e -d rxe0 -g %d -m %d -s %d -n %d -q %d -r 64", gidIndex(f.rxe), mtu, size, iters, pairs)
	p := pingpongTalk(t, role, "ibv_srq_pingpong", line, all, func(texts []string) {
		for i, e := range ends {
			require.NoError(t, e.ctx.ConnectQP(e.qp, parsePingpong(t, texts[i], mtu)))
		}
	})

	// Each queue pair answers until the program has ended.
	ctx, cancel := context.WithCancel(wait(t))
	defer cancel()
	var heard atomic.Int64
	var answering sync.WaitGroup
	for _, e := range ends {
		if role == "server" {
			e.post(t, uapi.WR{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: e.mr, Length: size}}})
		}
		answering.Go(func() {
			for {
				var wc [1]uapi.WC
				if n, err := e.ctx.WaitCQ(ctx, e.qp, wc[:]); err != nil || n != 1 || wc[0].Status != uapi.WCSuccess {
					if err != nil && !errors.Is(err, context.Canceled) {
						t.Errorf("%v", err)
					}
					return
				}
				if wc[0].Opcode != uapi.WCOpRecv {
					continue
				}
				heard.Add(1)
				got := target(int(wc[0].WRID))
				if wc[0].ByteLen != size || wc[0].QP != e.qp || !bytes.Equal(got, echo) {
					t.Errorf("%+v, or its bytes", wc[0])
				}
				copy(got, empty)
				err := offer(int(wc[0].WRID))
				if err == nil {
					_, err = e.ctx.Post(e.qp, []uapi.WR{{Op: uapi.OpSend, Flags: uapi.Signaled, SGE: []uapi.SGE{{MR: e.mr, Length: size}}}})
				}
				if err != nil {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	text := p.ends(t)
	cancel()
	answering.Wait()
	require.Contains(t, text, fmt.Sprintf("%d bytes in", 2*size*iters))
	require.GreaterOrEqual(t, heard.Load(), int64(iters))
	count(2*iters, 2*size*iters)
}

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
	c := holder.ctx
	events := c.Events(wait(t))
	srq := must.Get(c.CreateSRQ(uapi.SRQConfig{Depth: 8, Limit: 2}))(t)
	t.Cleanup(func() { require.NoError(t, c.DestroySRQ(srq)) })
	var takers, senders [2]*end
	for i := range takers {
		takers[i], senders[i] = holder.newEnd(t, uapi.QPConfig{SRQ: srq}), peer.newEnd(t, uapi.QPConfig{})
		connect(t, takers[i], senders[i])
	}
	const size = 3000
	posted, sent := 0, 0
	offer := func() {
		at := uint64(len(holder.mem)/2 + posted*size)
		must.Get(c.PostSRQ(srq, []uapi.WR{{ID: uapi.WRID(posted), Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: holder.mr, Offset: at, Length: size}}}}))(t)
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
		info := must.Get(c.QuerySRQ(srq))(t)
		return info.Limit
	}
	told := func() {
		require.Zero(t, limit(), "the limit is not used up")
		e := <-events
		require.Equal(t, []any{"SRQ_LIMIT_REACHED", srq, 0}, []any{e.Type, e.SRQ, e.Lost})
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
	require.NoError(t, c.SetSRQLimit(srq, 1))
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
