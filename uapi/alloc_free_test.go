package uapi

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
)

// Posting and polling allocate nothing; nor does the device beneath, which
// runs in the doorbell and in its receive loop.
func TestPostAndPollAllocateNothing(t *testing.T) {
	if amount.Race {
		t.Skip("the race detector allocates; run it without -race")
	}
	for _, device := range []string{"sim?net=allocs", "soft?port=0"} {
		t.Run(device, func(t *testing.T) {
			a := testDevice(t, device)
			b := testDevice(t, device)
			qa, qb := linked(t, a, b, QPConfig{SendDepth: 8, RecvDepth: 8, Inline: 64})
			buf, target := make([]byte, 4096), make([]byte, 4096)
			mr := must.Get(a.RegMR(buf, AccessLocalWrite))(t)
			peer := must.Get(b.RegMR(target, AccessLocalWrite|AccessRemoteWrite))(t)
			info := must.Get(b.QueryMR(peer))(t)

			wc := make([]WC, 8)
			drain := func(d *Device, qp QP) {
				for {
					n, err := d.PollCQ(qp, wc)
					if err != nil || n > 0 && wc[0].Status != WCSuccess {
						t.Error(err, wc[0])
					}
					if n != 0 {
						return
					}
				}
			}
			write := func() {
				if _, err := a.PostWrite(qa, mr, 0, info.Addr, info.RKey, 4096); err != nil {
					t.Error(err)
				}
				drain(a, qa)
			}
			message := func() {
				if _, err := b.PostRecv(qb, peer, 0, 4096); err != nil {
					t.Error(err)
				}
				if _, err := a.PostSend(qa, mr, 64); err != nil {
					t.Error(err)
				}
				drain(a, qa)
				drain(b, qb)
			}
			list := []WR{
				{Op: OpWrite, SGE: []SGE{{mr, 0, 100}}, RemoteAddr: info.Addr, RKey: info.RKey},
				{Op: OpWrite, Flags: Signaled, SGE: []SGE{{mr, 0, 100}}, RemoteAddr: info.Addr, RKey: info.RKey},
			}
			post := func() {
				if _, err := a.Post(qa, list); err != nil {
					t.Error(err)
				}
				drain(a, qa)
			}
			pair := must.Get(a.QueryQP(qa))(t)
			cqs := []CQ{pair.SendCQ}
			wake := func() {
				for _, wait := range []func() (int, error){
					func() (int, error) { return a.WaitQueue(t.Context(), cqs[0], wc) },
					func() (int, error) { return a.WaitAny(t.Context(), cqs, wc) },
				} {
					if err := a.WakeCQ(cqs[0]); err != nil {
						t.Error(err)
					}
					if n, err := wait(); n != 0 || err != nil {
						t.Error(n, err)
					}
				}
			}
			wait := func() {
				if _, err := a.PostWrite(qa, mr, 0, info.Addr, info.RKey, 4096); err != nil {
					t.Error(err)
				}
				if n, err := a.WaitAny(t.Context(), cqs, wc); n != 1 || err != nil {
					t.Error(n, err)
				}
			}
			mem := must.Get(b.RegMR(make([]byte, 4096), AccessLocalWrite|AccessMWBind))(t)
			mw := must.Get(b.CreateMW(qb))(t)
			bind := []WR{
				{Op: OpBindMW, MW: mw, SGE: []SGE{{mem, 0, 4096}}, Access: AccessRemoteWrite},
				{Op: OpLocalInv, Flags: Signaled, MW: mw},
			}
			answer := []WR{{Op: OpSendInv, Flags: Signaled, SGE: []SGE{{mr, 0, 64}}}}
			lend := func() {
				if _, err := b.Post(qb, bind); err != nil {
					t.Fatal(err)
				}
				drain(b, qb)
				there, err1 := b.NextRegion(mw, bind[0].SGE[0], AccessRemoteWrite)
				answer[0].RKey = there.RKey
				_, err2 := b.Post(qb, bind[:1])
				_, err3 := b.PostRecv(qb, peer, 0, 4096)
				_, err4 := a.Post(qa, answer)
				if err := errors.Join(err1, err2, err3, err4); err != nil {
					t.Fatal(err)
				}
				drain(a, qa)
				drain(b, qb)
			}
			data := []WR{{Op: OpWrite, Flags: Signaled, Data: buf[:64], RemoteAddr: info.Addr, RKey: info.RKey}}
			loop := func() {
				left := 10
				post := func() {
					var err error
					if left%2 == 0 {
						_, err = a.Post(qa, data)
					} else {
						_, err = a.Write(qa, SGE{MR: mr, Length: 4096}, info.Region())
					}
					if err != nil {
						t.Error(err)
					}
				}
				post()
				for wc, err := range a.Completions(t.Context(), cqs[0]) {
					if err != nil || wc.Status != WCSuccess {
						t.Error(err, wc)
					}
					if left--; left == 0 {
						break
					}
					post()
				}
			}
			for name, f := range map[string]func(){"loop": loop, "write": write, "lend": lend, "message": message, "list": post, "wake": wake, "wait": wait} {
				for range 50 {
					f() // buffers grow to their size
				}
				require.Less(t, leastAllocsPerRun(f), 0.5, name)
			}
		})
	}
}

// leastAllocsPerRun is the least of several rounds. A path that allocates does
// so in each of them. The runtime does in one: it makes up to 128 records of
// waiting goroutines (sudogs) anew where they move to another processor, after
// each garbage collection.
func leastAllocsPerRun(f func()) float64 {
	least := allocsPerRun(200, f)
	for range 9 {
		if least < 0.5 {
			break
		}
		least = min(least, allocsPerRun(200, f))
	}
	return least
}

// allocsPerRun is testing.AllocsPerRun, but leaves all processors on, because
// f spins until another goroutine has done its part.
func allocsPerRun(runs int, f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(runs)
}

// TestDeviceAfterDevice: a device takes what one before it received into and
// sent from, 3 MB. Of some, since a garbage collection or another test may have
// taken that.
func TestDeviceAfterDevice(t *testing.T) {
	least := uint64(math.MaxUint64)
	var before, after runtime.MemStats
	for range 20 {
		runtime.ReadMemStats(&before)
		require.NoError(t, must.Get(Open("soft?port=0", OpenConfig{}))(t).Close())
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	require.Less(t, least, uint64(1<<20))
}
