package rnic

import (
	"bytes"
	"runtime"
	"sync"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/rnic/link"
	"github.com/rdmashim/rdmashim/tests/linktest"
)

// Sixteen processors' worth of programs on two devices: some poll, some wait,
// all in both directions, while others make and destroy queue pairs and regions
// and read the counters. Each message arrives, and each completes in its order.
func TestSixteenProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16))
	const programs, messages, room = 16, 40, 8 << 10
	for name, links := range map[string]func(testing.TB) [2]link.Link{
		"sim": linktest.Sim,
		"udp": func(t testing.TB) [2]link.Link { return linktest.UDP(t, "127.0.0.1") },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := connected(t, links(t), programs*room, abi.MTU1024, qpOptions{})
			at := defaults()
			at.timeout = 20
			var work, rest sync.WaitGroup
			done := make(chan struct{})
			for i := range programs {
				x, y := a, b
				if i%2 == 1 {
					x, y = b, a
				}
				q, _ := joined(t, x, y, at)
				half := i * room // of its own: the first half is written from, the second to
				wr := write(x, y, 0, half, half+room/2, 1)
				w := &waiter{d: &testDevice{Device: x.Device, qp: q}, cq: q.send}
				work.Go(func() {
					for n := 1; n <= messages && !t.Failed(); n++ {
						size := 1 + n*37%(room/2)
						from, to := x.mem.buf[half:half+size], y.mem.buf[half+room/2:half+room/2+size]
						for k := range from {
							from[k] = byte(n + k)
						}
						wr.ID, wr.SGE[0] = uint64(n), ring.SGE{Addr: x.mem.at + uint64(half), Length: uint32(size), LKey: x.mem.mr.LKey()}
						posts := 1
						if n%10 == 0 {
							posts = 3
						}
						for range posts {
							q.postRaw(wr)
						}
						for range posts {
							if i%4 < 2 {
								for !q.send.take() {
									x.Progress()
								}
							} else if err := w.wait(t.Context()); err != nil {
								t.Error(err)
							}
						}
						if !bytes.Equal(from, to) {
							t.Errorf("program %d, message %d of %d bytes did not arrive", i, n, size)
						}
					}
				})
			}
			for _, d := range []*testDevice{a, b} {
				rest.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						q := newQP(t, d.Device, d.pd, qpOptions{})
						q.toInit(at)
						if err := q.qp.Destroy(); err != nil {
							t.Error(err)
						}
						if err := register(t, d.Device, d.pd, 64, allAccess).mr.Dereg(); err != nil {
							t.Error(err)
						}
						d.Counters()
					}
				})
			}
			work.Wait()
			close(done)
			rest.Wait()
		})
	}
}
