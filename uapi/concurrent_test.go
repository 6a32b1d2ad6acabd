package uapi_test

import (
	"encoding/binary"
	"errors"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// Many goroutines post to one queue pair: every request takes effect exactly
// once, completions come in the order of the ids, and none is lost.
func TestManyPosters(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		x, y := uapitest.Connect(t, a, b)
		const posters, each = 4, 250
		ids := make(chan uapi.WRID, posters*each)
		var wg sync.WaitGroup
		room := make(chan struct{}, uapitest.Depth)
		for range posters {
			wg.Go(func() {
				for range each {
					room <- struct{}{}
					id, err := x.FetchAdd(x.QP, piece(x.MR, 0, 8), x.Peer, 1)
					if err != nil {
						t.Error(err)
					}
					ids <- id
				}
			})
		}
		for i := range posters * each {
			require.Equal(t, uapi.WRID(i), x.Next(1)[0].WRID)
			<-room
		}
		wg.Wait()
		seen := make(map[uapi.WRID]bool)
		for range posters * each {
			id := <-ids
			require.False(t, seen[id])
			seen[id] = true
		}
		require.Equal(t, uint64(posters*each), binary.NativeEndian.Uint64(y.Buf))
	})
}

// A program that spins as the founding document does works on a link that
// loses packets, also in a bubble, where time passes only while it yields.
func TestSpinningInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := uapitest.Pair(t, "loss=30%&seed=5")
		x, _ := uapitest.Connect(t, a, b)
		for range 5 {
			id := x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, 20000))
			var wc [1]uapi.WC
			for {
				n := must.Get(x.PollCQ(x.QP, wc[:]))(t)
				if n != 0 {
					break
				}
			}
			require.Equal(t, id, wc[0].WRID)
			require.NoError(t, wc[0].Err())
		}
	})
}

// A program that watches memory instead of completions: once the last word of
// a message is there, so is the rest.
func TestSpinningOnMemory(t *testing.T) {
	t.Parallel()
	eachDevice(t, func(t *testing.T, a, b *uapi.Device) {
		x, y := uapitest.Connect(t, a, b)
		const size = 10000
		word := must.Get(uapi.Uint64At(y.Buf, size-8))(t)
		ctx := within(t)
		for round := range uint64(50) {
			for at := 0; at < size; at += 8 {
				binary.NativeEndian.PutUint64(x.Buf[at:], round+1)
			}
			x.Must(x.PostWrite(x.QP, x.MR, 0, x.Peer.Addr, x.Peer.RKey, size))
			for word.Load() != round+1 {
				require.NoError(t, ctx.Err())
			}
			first := must.Get(uapi.Uint64At(y.Buf, 0))(t)
			require.Equal(t, round+1, first.Load())
			x.Next(1)
		}
	})
}

// Arbitrary calls with arbitrary arguments never panic or hang, and every
// error carries an errno.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 2, 3, 4, 2, 9, 9, 9, 3, 0, 0, 1, 4, 255, 255, 255})
	f.Add([]byte{5, 1, 1, 1, 6, 0, 0, 0, 7, 0, 1, 2, 8, 2, 2, 2, 9, 1, 0, 200, 10, 0, 0, 0, 11, 1, 1, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		a, b := uapitest.Pair(t, "")
		x, y := uapitest.ConnectWith(t, a, b, uapi.QPConfig{SendDepth: 4, RecvDepth: 4, SendSGE: 2, Inline: 32}, 4096)
		var made []uapi.QP
		for len(program) >= 4 {
			op, p, q, r := program[0], program[1], program[2], program[3]
			program = program[4:]
			pick := func(v byte) uint64 {
				return []uint64{0, 1, uint64(v), 4095, 4096, 1 << 31, -uint64(v)}[v%7]
			}
			qp := []uapi.QP{x.QP, y.QP, uapi.QP(p), -1}[p%4]
			mr := []uapi.MR{x.MR, y.MR, uapi.MR(q), -5}[q%4]
			addr, key := x.Peer.Addr+pick(r), x.Peer.RKey+uint32(p>>4)
			var err error
			switch op % 12 {
			case 0:
				_, err = x.PostWrite(qp, mr, pick(p), addr, key, pick(q))
			case 1:
				_, err = x.PostRead(qp, mr, pick(p), addr, key, pick(q))
			case 2:
				_, err = x.PostRecv(qp, mr, pick(p), pick(r))
			case 3:
				_, err = x.PostSendImm(qp, mr, pick(p), uint32(r))
			case 4:
				_, err = x.FetchAdd(qp, piece(mr, pick(p), 8), uapi.Region{Addr: addr, Length: pick(q), RKey: key}, pick(r))
			case 5:
				_, err = x.Post(qp, []uapi.WR{{Op: uapi.Op(q), Flags: uapi.SendFlags(r), SGE: []uapi.SGE{{MR: mr, Offset: pick(p), Length: pick(r)}}, RemoteAddr: addr, RKey: key}})
			case 6:
				_, err = x.PollCQ(qp, make([]uapi.WC, p%3))
			case 7:
				_, err = y.PostRecv(y.QP, y.MR, 0, pick(q))
			case 8:
				var n uapi.QP
				if n, err = x.CreateQP(int(int8(p)), int(int8(q))); err == nil {
					made = append(made, n)
				}
			case 9:
				err = x.ConnectQP(qp, uapi.Endpoint{QPN: uint32(p), PSN: uint32(q), MTU: 256 << (r % 5)})
			case 10:
				_, err = x.QueryQP(qp)
			case 11:
				err = y.Disconnect(qp)
			}
			var errno syscall.Errno
			if err != nil && !errors.As(err, &errno) {
				t.Fatalf("operation %d: %v has no errno", op%12, err)
			}
		}
		for _, qp := range made {
			if err := x.DestroyQP(qp); err != nil {
				t.Error(err)
			}
		}
	})
}
