package suite

import (
	"context"
	"errors"
	"net/netip"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
	"github.com/rdmashim/rdmashim/uapi"
)

// nvmeDisk is the disk's size in bytes; the page cache has it.
const nvmeDisk = 64 << 20

// nvmeTable lists the sample of NVMe over RDMA, with 32 commands outstanding,
// through shared memory and by UDP.
func (s *suite) nvmeTable() (table []comparison) {
	for _, x := range []struct {
		work, unit string
		size       int
		write      bool
		value      func(nvme.Step) float64
	}{
		{"NVMe over RDMA, read 4 KiB", "k/s", 4 << 10, false, func(t nvme.Step) float64 { return t.IOPS() / 1e3 }},
		{"NVMe over RDMA, write 4 KiB", "k/s", 4 << 10, true, func(t nvme.Step) float64 { return t.IOPS() / 1e3 }},
		{"NVMe over RDMA, read 128 KiB", "MB/s", 128 << 10, false, func(t nvme.Step) float64 { return t.MBps() }},
		{"NVMe over RDMA, write 128 KiB", "MB/s", 128 << 10, true, func(t nvme.Step) float64 { return t.MBps() }},
	} {
		on := func(name, shm string) *series {
			return pick(name, func(ctx context.Context) (nvme.Step, error) {
				return s.disk(ctx, cli.WithOptions(peer.DefaultDevice(s.device), "shm="+shm), nvme.Work{Namespace: 1, Size: x.size, Write: x.write, Time: s.turn})
			}, x.value)
		}
		table = append(table, comparison{x.work, x.unit, on(x.work, "on"), on("the same by UDP", "off"), none, false})
	}
	return table
}

// disk has a host of this process use the disk of another for a time.
func (s *suite) disk(ctx context.Context, device string, w nvme.Work) (step nvme.Step, err error) {
	at, stop, err := other("nvme", device)(ctx)
	if err != nil {
		return step, err
	}
	defer stop()
	d, err := uapi.Open(device, uapi.OpenConfig{})
	if err != nil {
		return step, err
	}
	defer d.Close()
	h, err := nvme.Connect(ctx, d, at.String(), nvme.HostConfig{})
	if err != nil {
		return step, err
	}
	steps, err := w.Run(ctx, h)
	if err = errors.Join(err, h.Close()); err == nil {
		step = *steps[0]
	}
	return step, err
}

// serveDisk is the other process.
func serveDisk(ctx context.Context, device string, announce func(netip.AddrPort) error) error {
	disk, err := nvme.NewDisk(nvmeDisk)
	if err != nil {
		return err
	}
	defer disk.Close()
	d, err := uapi.Open(device, uapi.OpenConfig{})
	if err != nil {
		return err
	}
	defer d.Close()
	l, err := d.Listen(":0", uapi.ListenConfig{})
	if err != nil {
		return err
	}
	defer l.Close()
	info, err := d.QueryDevice()
	if err != nil {
		return err
	}
	if err := announce(netip.AddrPortFrom(info.Address.Addr(), l.Addr().Port())); err != nil {
		return err
	}
	return (&nvme.Target{Disks: []nvme.Disk{disk}}).Serve(ctx, l)
}
