package suite

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/diskload"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme"
	"github.com/rdmashim/rdmashim/uapi"
)

// guestDiskTurn has enough commands in an emulated guest.
const guestDiskTurn = 2 * time.Second

// nvmeDisk is the disk's size in bytes; the page cache has it.
const nvmeDisk = 64 << 20

// diskWork is a host's load on a disk, with 32 commands outstanding.
type diskWork struct {
	work, unit string
	size       int
	write      bool
	value      func(*diskload.Step) float64
}

var diskWorks = []diskWork{
	{"read 4 KiB", "k/s", 4 << 10, false, func(t *diskload.Step) float64 { return t.IOPS() / 1e3 }},
	{"write 128 KiB", "MB/s", 128 << 10, true, func(t *diskload.Step) float64 { return t.MBps() }},
}

// nvmeTable lists the sample of NVMe over RDMA, through shared memory and by
// UDP.
func (s *suite) nvmeTable() (table []comparison) {
	for _, x := range diskWorks {
		work := "NVMe over RDMA, " + x.work
		on := func(name, shm string) *series {
			device := cli.WithOptions(peer.DefaultDevice(s.device), "shm="+shm)
			return pick(name, func(ctx context.Context) (*diskload.Step, error) {
				return s.ownDisk(ctx, device, device, x, s.turn)
			}, x.value)
		}
		table = append(table, comparison{work, x.unit, on(work, "on"), on("the same by UDP", "off"), none, false})
	}
	return table
}

// nvmetTable lists, in a guest, the sample's host and target on soft RNICs
// beside the same host and the kernel's target on rxe0. Neither has a wire.
func (s *suite) nvmetTable() (table []comparison) {
	for _, x := range diskWorks {
		ours := pick("the sample's target", func(ctx context.Context) (*diskload.Step, error) {
			return s.ownDisk(ctx, "soft:127.0.0.2?port=14791", "soft:127.0.0.1?port=14791", x, guestDiskTurn)
		}, x.value)
		kernels := pick("nvmet on kernel rxe", func(ctx context.Context) (*diskload.Step, error) {
			return s.disk(ctx, "rxe0", s.nvmet, nvme.HostConfig{Subsystem: nvmetName}, x, guestDiskTurn)
		}, x.value)
		table = append(table, comparison{"NVMe over RDMA, emulated, " + x.work, x.unit, ours, kernels, none, false})
	}
	return table
}

// ownDisk has a host of this process use the disk of another for a time.
func (s *suite) ownDisk(ctx context.Context, server, client string, x diskWork, turn time.Duration) (*diskload.Step, error) {
	at, stop, err := other("nvme", server)(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	return s.disk(ctx, client, at.String(), nvme.HostConfig{}, x, turn)
}

// disk has a host use a target's first disk for a time.
func (s *suite) disk(ctx context.Context, device, addr string, c nvme.HostConfig, x diskWork, turn time.Duration) (*diskload.Step, error) {
	d, err := uapi.Open(device, uapi.OpenConfig{})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	c.KeepAlive = 10 * time.Minute // in an emulated guest commands take seconds
	h, err := nvme.Connect(ctx, d, addr, c)
	if err != nil {
		return nil, err
	}
	step, err := h.Namespaces[1].Load().Random(ctx, x.size, x.write, turn)
	return step, errors.Join(err, h.Close())
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
