package rnic

import (
	"fmt"
	"testing"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/link"
)

func benchLinks(b *testing.B, kind string) [2]link.Link {
	if kind == "sim" {
		return simLinks(b)
	}
	return udpLinks(b, "127.0.0.1")
}

// BenchmarkPollPingPong is half a round trip of WRITEs of 64 bytes. Both sides
// poll: for the message in memory, and for the completions of what they sent.
// "one" goroutine does both sides' work: the cost of a message without a second
// processor.
func BenchmarkPollPingPong(b *testing.B) {
	for _, kind := range []string{"sim", "udp"} {
		b.Run(kind+"/one", func(b *testing.B) { pollPingPong(b, kind, false) })
		b.Run(kind+"/two", func(b *testing.B) { pollPingPong(b, kind, true) })
	}
}

func pollPingPong(b *testing.B, kind string, two bool) {
	x, y := connected(b, benchLinks(b, kind), 64, abi.MTU4096, qpOptions{})
	there, back := write(x, y, 1, 0, 0, 64), write(y, x, 1, 0, 0, 64)
	// The last word of a message is stored atomically after the rest.
	out, in := func(d *testDevice, n uint64) { word(d.mem, 7).Store(n) }, func(d *testDevice, n uint64) bool { return word(d.mem, 7).Load() == n }
	wait := func(d *testDevice, n uint64) {
		for spins := 1; !in(d, n); spins++ {
			d.Progress()
			if spins%100_000 == 0 && d.qp.qp.State() == abi.QPSErr {
				panic("the queue pair failed")
			}
		}
		d.qp.send.take()
	}
	b.ReportAllocs()
	b.ResetTimer()
	if !two {
		for i := range uint64(b.N) {
			out(x, 2*i+1)
			x.qp.postRaw(there)
			wait(y, 2*i+1)
			out(y, 2*i+2)
			y.qp.postRaw(back)
			wait(x, 2*i+2)
		}
	} else {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range uint64(b.N) {
				wait(y, 2*i+1)
				out(y, 2*i+2)
				y.qp.postRaw(back)
			}
		}()
		for i := range uint64(b.N) {
			out(x, 2*i+1)
			x.qp.postRaw(there)
			wait(x, 2*i+2)
		}
		<-done
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half")
	b.ReportMetric(float64(x.drive.Wakeups()+y.drive.Wakeups())/float64(b.N), "wakes/op")
}

// BenchmarkPollWrite keeps 16 WRITEs outstanding; each side polls in a
// goroutine of its own.
func BenchmarkPollWrite(b *testing.B) {
	for _, kind := range []string{"sim", "udp"} {
		for _, size := range []int{64, 4 << 10, 64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%d", kind, size), func(b *testing.B) {
				x, y := connected(b, benchLinks(b, kind), size, abi.MTU4096, qpOptions{depth: 60})
				wr := write(x, y, 1, 0, 0, size)
				stop, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					for {
						select {
						case <-stop:
							return
						default:
							y.Progress()
						}
					}
				}()
				b.SetBytes(int64(size))
				b.ReportAllocs()
				out := 0
				wait := func() {
					for !x.qp.send.take() {
						x.Progress()
					}
					out--
				}
				for b.Loop() {
					if out == 16 {
						wait()
					}
					x.qp.postRaw(wr)
					out++
				}
				for out > 0 {
					wait()
				}
				close(stop)
				<-done
				b.ReportMetric(float64(x.counter(b, "retransmitted_pkts"))/float64(b.N), "rexmit/op")
			})
		}
	}
}
