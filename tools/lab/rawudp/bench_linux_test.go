package rawudp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// turn is about how long one side runs before the other does.
const turn = 40 * time.Millisecond

// BenchmarkWrite runs WRITEs between two soft devices of this process and the
// reference in turn, a round each for an iteration, and reports the medians:
// ours-MB/s, ref-MB/s, and the ratio of the two runs of a round. cpu-ratio is
// that of the bytes moved in a second of processor time, which other programs
// on the machine disturb less; they share out the time, and the waiting,
// differently. target is the ratio that is aimed at, 0 where there is none.
// tools/bench prints them as a table:
//
//	go test -run '^$' -bench Write -benchtime 9x ./tools/lab/rawudp
func BenchmarkWrite(b *testing.B) {
	for _, work := range []struct {
		name   string
		size   int
		target float64
	}{
		{"64B", 64, 0},
		{"4KiB", 4 << 10, 0},
		{"64KiB", 64 << 10, 0},
		{"1MiB", 1 << 20, 0.7},
		{"8MiB", 8 << 20, 0},
	} {
		b.Run(work.name, func(b *testing.B) { compare(b, work.size, work.target) })
	}
}

// mover moves n messages, and returns when they are at their place.
type mover func(n int) error

func compare(b *testing.B, size int, target float64) {
	ref, err := New(size)
	if errors.Is(err, syscall.ENOTSUP) {
		b.Skip("no UDP socket with GSO; run it on Linux 5.0 or later: ", err)
	}
	if err != nil {
		b.Fatal(err)
	}
	defer ref.Close()
	ours := writes(b, size)
	o := side{move: ours, n: calibrate(b, ours)}
	r := side{move: ref.Move, n: calibrate(b, ref.Move)}
	var ratios []float64
	for round := 0; b.Loop(); round++ {
		first, second := &o, &r
		if round%2 == 1 {
			first, second = second, first
		}
		first.run(b, size)
		second.run(b, size)
		ratios = append(ratios, o.rates[round]/r.rates[round])
	}
	b.ReportMetric(0, "ns/op") // of a round: says nothing
	b.ReportMetric(median(o.rates), "ours-MB/s")
	b.ReportMetric(median(r.rates), "ref-MB/s")
	b.ReportMetric(median(ratios), "ratio")
	if o.cpu > 0 && r.cpu > 0 {
		b.ReportMetric(o.bytes/o.cpu.Seconds()/(r.bytes/r.cpu.Seconds()), "cpu-ratio")
	}
	b.ReportMetric(target, "target")
}

// side is one of the two that are compared.
type side struct {
	move  mover
	n     int       // messages in a turn
	rates []float64 // MB/s, of each turn
	bytes float64   // of all turns
	cpu   time.Duration
}

func (s *side) run(b *testing.B, size int) {
	cpu, began := cpuTime(), time.Now()
	if err := s.move(s.n); err != nil {
		b.Fatal(fmt.Errorf("%d messages of %d bytes: %w", s.n, size, err))
	}
	bytes := float64(s.n) * float64(size)
	s.rates = append(s.rates, bytes/1e6/time.Since(began).Seconds())
	s.bytes += bytes
	s.cpu += cpuTime() - cpu
}

// writes connects two soft devices and returns what keeps a queue of WRITEs
// between them full: small ones are posted many at a time, and the last of them
// tells of all.
func writes(b *testing.B, size int) mover {
	depth, list := 8, 1
	if size <= 4096 {
		depth, list = 512, 32
	}
	open := func() *uapi.Device {
		d, err := uapi.Open("soft?port=0", uapi.OpenConfig{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { d.Close() })
		return d
	}
	x, y := uapitest.ConnectWith(b, open(), open(), uapi.QPConfig{SendDepth: depth}, size)
	for i := range x.Buf {
		x.Buf[i] = byte(i*7 + i>>8)
	}
	wrs := make([]uapi.WR, list)
	for i := range wrs {
		wrs[i] = uapi.WR{Op: uapi.OpWrite, SGE: []uapi.SGE{{MR: x.MR, Length: uint64(size)}}, RemoteAddr: x.Peer.Addr, RKey: x.Peer.RKey}
	}
	wc := make([]uapi.WC, depth)
	move := func(n int) error {
		for posted, lists := 0, 0; posted < n || lists > 0; {
			for posted < n && (lists+1)*list <= depth {
				m := min(list, n-posted)
				wrs[m-1].Flags = uapi.Signaled
				_, err := x.Post(x.QP, wrs[:m])
				wrs[m-1].Flags = 0
				if err != nil {
					return err
				}
				posted, lists = posted+m, lists+1
			}
			k, err := x.WaitCQ(context.Background(), x.QP, wc)
			if err != nil {
				return err
			}
			for i := range wc[:k] {
				if err := wc[i].Err(); err != nil {
					return err
				}
			}
			lists -= k
		}
		return nil
	}
	if err := move(1); err != nil {
		b.Fatal(err)
	}
	if !bytes.Equal(x.Buf, y.Buf) {
		b.Fatal("the bytes did not arrive")
	}
	return move
}

// calibrate finds how many messages take a turn.
func calibrate(b *testing.B, move mover) int {
	n := 1
	for {
		began := time.Now()
		if err := move(n); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if took > turn/4 {
			return max(1, int(float64(n)*float64(turn)/float64(took)))
		}
		n *= 2
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
}

// cpuTime is the processor time that the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
