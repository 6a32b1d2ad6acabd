package top

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// rocePort is the UDP port of kernel devices.
const rocePort = 4791

// kernel reads the kernel's devices; none where there is no RDMA.
func (s *Source) kernel(ctx context.Context) ([]stats.Device, error) {
	var err error
	if s.manager == nil {
		if s.manager, err = s.Kernel(); err != nil {
			s.manager = nil
			return nil, unlessNone(err)
		}
	}
	devices, err := s.manager.Devices(ctx)
	if err != nil {
		return nil, unlessNone(err)
	}
	list := make([]stats.Device, 0, len(devices))
	for _, d := range devices {
		r, err := s.readKernel(ctx, d)
		if errors.Is(err, syscall.ENODEV) {
			continue // deleted meanwhile
		}
		if err != nil {
			return list, err
		}
		list = append(list, r)
	}
	return list, nil
}

// unlessNone is nil for an error that says that the system has no RDMA.
func unlessNone(err error) error {
	var none *netlinkmgr.NoRDMAError
	if errors.As(err, &none) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

func (s *Source) readKernel(ctx context.Context, d netlinkmgr.Device) (stats.Device, error) {
	m := s.manager
	r := stats.Device{Name: d.Name, Device: "host:" + d.Name, Kind: "host", Time: time.Now(), Ports: []stats.Port{}, QueuePairs: []stats.QueuePair{}}
	ports, err := m.Ports(ctx, d)
	if err != nil {
		return r, err
	}
	for _, p := range ports {
		counters, err := m.Counters(ctx, d, p.Port)
		if err != nil && !errors.Is(err, syscall.EOPNOTSUPP) { // a driver without any
			return r, err
		}
		port := stats.Port{Port: int(p.Port), Counters: stats.Counters{}}
		if p.State != nil {
			port.State = p.State.String()
		}
		for _, c := range counters {
			port.Counters[c.Name] = c.Value
		}
		r.Ports = append(r.Ports, port)
		if r.NetDev == "" {
			r.NetDev = p.NetDev
		}
	}
	if len(ports) > 0 {
		r.Address = bestAddress(ctx, m, d.Name, ports[0].Port)
	}
	pairs, err := m.QPs(ctx, d)
	for _, q := range pairs {
		pair := queuePair(&q)
		if s.ProcessOf != nil && pair.PID != 0 {
			pair.PID = s.ProcessOf(pair.PID)
		}
		r.QueuePairs = append(r.QueuePairs, pair)
	}
	slices.SortFunc(r.QueuePairs, func(a, b stats.QueuePair) int { return int(a.QPN) - int(b.QPN) })
	return r, err
}

// bestAddress is the one that other programs would use; none when it cannot be
// told.
func bestAddress(ctx context.Context, m *netlinkmgr.Manager, device string, port uint32) netip.AddrPort {
	gids, err := m.GIDs(ctx, device, port)
	if err != nil {
		return netip.AddrPort{}
	}
	for _, g := range gids {
		if g.Best && g.Type == netlinkmgr.GIDRoCEv2 {
			return netip.AddrPortFrom(g.Addr(), rocePort)
		}
	}
	return netip.AddrPort{}
}

func queuePair(q *netlinkmgr.QP) stats.QueuePair {
	r := stats.QueuePair{
		QPN: q.LQPN, Type: q.Type.String(), State: q.State.String(), SQPSN: q.SQPSN,
		PID: int(q.Owner.PID), Process: q.Owner.Comm,
	}
	if q.RQPN != nil {
		r.RemoteQPN = *q.RQPN
	}
	if q.RQPSN != nil {
		r.RQPSN = *q.RQPSN
	}
	return r
}

// processOf is the process of a thread (proc(5), /proc/PID/status); the thread
// itself when that cannot be told.
func processOf(thread int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(thread) + "/status")
	if err != nil {
		return thread
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if pid, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return pid
			}
		}
	}
	return thread
}
