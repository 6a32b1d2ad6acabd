package suite

import (
	"context"
	"errors"
	"net"
	"runtime"

	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
	"github.com/rdmashim/rdmashim/uapi"
)

// queuePairMemory returns the bytes of this process that a queue pair of the
// soft device takes, its rings not counted: the growth of the heap and the
// goroutines' stacks for n connected pairs of queue pairs, on two devices, each
// of which has written 64 bytes.
func queuePairMemory(ctx context.Context, n int) (bytes float64, err error) {
	devices, err := open("soft?port=0", "soft?port=0")
	defer closeAll(devices)
	if err != nil {
		return 0, err
	}
	// Memory that a device makes at its first use is not a queue pair's.
	few, err := pairs(ctx, devices, 1)
	defer few.close()
	if err != nil {
		return 0, err
	}
	before := live()
	many, err := pairs(ctx, devices, n)
	defer many.close()
	if err != nil {
		return 0, err
	}
	all := live() - before
	rings, err := rings(n)
	return all/float64(2*n) - rings, err
}

// open opens two devices.
func open(names ...string) (devices [2]*uapi.Device, err error) {
	for i, name := range names {
		if devices[i], err = uapi.Open(name, uapi.OpenConfig{}); err != nil {
			return devices, err
		}
	}
	return devices, nil
}

func closeAll(devices [2]*uapi.Device) {
	for _, d := range devices {
		if d != nil {
			_ = d.Close()
		}
	}
}

// live returns the memory in use after garbage was collected, in bytes.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // of finalizers and pools
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) + float64(m.StackInuse)
}

// sides are the two ends of connected queue pairs.
type sides [2]*perf.Side

func (s sides) close() (err error) {
	for _, x := range s {
		if x != nil {
			err = errors.Join(err, x.Close())
		}
	}
	return err
}

// pairs connects n queue pairs of two devices, and lets each write.
func pairs(ctx context.Context, devices [2]*uapi.Device, n int) (s sides, err error) {
	s, err = join(ctx, devices, perf.Config{
		Op: perf.Write, Sizes: []int{64}, Iterations: 1, QPs: n, Depth: 1, List: 1, Moderation: 1, Spread: 64, Events: true,
	})
	for _, x := range s {
		if err == nil {
			_, err = x.Bandwidth(ctx)
		}
	}
	return s, err
}

// join connects two devices of this process as c says, for messages of its
// first size.
func join(ctx context.Context, devices [2]*uapi.Device, c perf.Config) (s sides, err error) {
	for i, d := range devices {
		if s[i], err = perf.NewSide(d, c, i == 0); err != nil {
			return s, err
		}
	}
	here, there := net.Pipe()
	defer here.Close()
	connected := make(chan error, 1)
	go func() {
		defer there.Close()
		connected <- s[1].Connect(ctx, there)
	}()
	err = s[0].Connect(ctx, here)
	here.Close()
	err = errors.Join(err, <-connected)
	for _, x := range s {
		if err == nil {
			err = x.Prepare(c.Sizes[0])
		}
	}
	return s, err
}

// rings is how many bytes the rings of one of n such queue pairs take, with its
// part of the completion queue's.
func rings(n int) (bytes float64, err error) {
	elem, _, _ := ring.SendCap(1, 0)
	for _, r := range []struct{ elem, slots, users int }{{elem, 1, 1}, {ring.RecvElemSize(1), 1, 1}, {ring.CQElemSize, n, n}} {
		q, err := ring.New(r.elem, r.slots)
		if err != nil {
			return 0, err
		}
		bytes += float64(len(q.Mapping())) / float64(r.users)
	}
	return bytes, nil
}
