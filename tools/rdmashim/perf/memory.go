package perf

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/rdmashim/rdmashim/kshim/ring"
	"github.com/rdmashim/rdmashim/uapi"
)

// QueuePairMemory is how many bytes of this process a queue pair of the soft
// device takes, its rings not counted: what the heap and the goroutines' stacks
// grow by for n connected pairs of queue pairs, on two devices, each of which has
// written 64 bytes.
func QueuePairMemory(ctx context.Context, n int) (bytes float64, err error) {
	var f farm
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.open(n + 1); err != nil {
		return 0, err
	}
	// What a device makes when it is first used is not a queue pair's.
	if err := f.grow(ctx, 1); err != nil {
		return 0, err
	}
	before := live()
	if err := f.grow(ctx, n); err != nil {
		return 0, err
	}
	all := live() - before
	rings, err := f.rings()
	if err != nil {
		return 0, err
	}
	return all/float64(2*n) - rings, nil
}

// live is what is in use after garbage was collected, in bytes.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) + float64(m.StackInuse)
}

// farm is two devices and the queue pairs between them.
type farm [2]struct {
	rdma   *uapi.Context
	mem    []byte
	mr     uapi.MR
	region uapi.Region
	cq     uapi.CQ
	qps    []uapi.QP
	wc     [64]uapi.WC
}

// farmSize is how many bytes each queue pair writes.
const farmSize = 64

func (f *farm) open(n int) (err error) {
	for i := range f {
		d := &f[i]
		if d.rdma, err = uapi.Open("soft?port=0"); err != nil {
			return err
		}
		if d.mem, err = uapi.Alloc(2 * farmSize); err != nil {
			return err
		}
		if d.mr, err = d.rdma.RegMR(d.mem, uapi.AccessLocalWrite|uapi.AccessRemoteWrite); err != nil {
			return err
		}
		info, err := d.rdma.QueryMR(d.mr)
		if err != nil {
			return err
		}
		d.region = info.Region()
		if d.cq, err = d.rdma.CreateCQ(n); err != nil {
			return err
		}
		d.qps = make([]uapi.QP, 0, n)
	}
	return nil
}

// grow adds n connected pairs that have each been used.
func (f *farm) grow(ctx context.Context, n int) error {
	for range n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var at [2]uapi.Endpoint
		for i := range f {
			d := &f[i]
			qp, err := d.rdma.CreateQPWith(uapi.QPConfig{SendCQ: d.cq, RecvCQ: d.cq, SendDepth: 1})
			if err != nil {
				return fmt.Errorf("queue pair %d: %w", len(d.qps)+1, err)
			}
			d.qps = append(d.qps, qp)
			if at[i], err = d.rdma.LocalEndpoint(qp); err != nil {
				return err
			}
		}
		for i := range f {
			d := &f[i]
			if err := d.rdma.ConnectQP(d.qps[len(d.qps)-1], at[1-i]); err != nil {
				return err
			}
		}
		for i := range f {
			if err := f.use(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// use lets the newest queue pair of device i write.
func (f *farm) use(ctx context.Context, i int) error {
	d, there := &f[i], f[1-i].region
	if _, err := d.rdma.PostWrite(d.qps[len(d.qps)-1], d.mr, 0, there.Addr+farmSize, there.RKey, farmSize); err != nil {
		return err
	}
	n, err := d.rdma.Wait(ctx, d.cq, d.wc[:])
	for k := range d.wc[:max(n, 0)] {
		err = errors.Join(err, d.wc[k].Err())
	}
	return err
}

// rings is how many bytes the rings of one of these queue pairs take.
func (f *farm) rings() (float64, error) {
	elem, _, _ := ring.SendCap(1, 0)
	sends, err := ring.New(elem, 1)
	if err != nil {
		return 0, err
	}
	receives, err := ring.New(ring.RecvElemSize(1), 1)
	if err != nil {
		return 0, err
	}
	return float64(len(sends.Mapping()) + len(receives.Mapping())), nil
}

func (f *farm) close() error {
	var errs []error
	for i := range f {
		d := &f[i]
		if d.rdma != nil {
			errs = append(errs, d.rdma.Close())
		}
		if d.mem != nil {
			errs = append(errs, uapi.Free(d.mem))
		}
	}
	return errors.Join(errs...)
}
