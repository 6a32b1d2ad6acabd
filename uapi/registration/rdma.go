package registration

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/rdmanet"
	"github.com/rdmashim/rdmashim/uapi/registration/internal/address"
)

// Soft is RDMA on the soft RNIC. Processes of a user share an address, as
// uapi.OpenLocal says.
type Soft struct {
	Addr string // an IP address of this machine
	// Options are the device's, as in its name for uapi.Open: "loss=1%&seed=7".
	Options string
	Rings   Rings
}

// Kernel is RDMA on a device of the kernel.
type Kernel struct {
	Addr  string // an IP address among the device's RoCE v2 GIDs
	Rings Rings
}

// Kind is "soft".
func (Soft) Kind() string { return "soft" }

// Kind is "kernel".
func (Kernel) Kind() string { return "kernel" }

// Open opens the soft device on the address.
func (s Soft) Open(ctx context.Context, config *Config) (Datapath, error) {
	addr, devices, err := s.Rings.at("soft", s.Addr)
	if err != nil {
		return nil, err
	}
	if d, _ := onDevice(devices, uapi.KindSoft, addr); d != nil && d.PortState == uapi.PortDown {
		return nil, down(d, addr)
	}
	device, err := uapi.OpenLocal(addr.String(), uapi.OpenConfig{Device: "soft?" + s.Options})
	if err != nil {
		return nil, address.Explain(err)
	}
	return openRings(config, device, addr, s.Rings)
}

// Open opens the device that has the address.
func (k Kernel) Open(ctx context.Context, config *Config) (Datapath, error) {
	addr, devices, err := k.Rings.at("kernel", k.Addr)
	if err != nil {
		return nil, err
	}
	found, err := kernelDevice(devices, addr)
	if err != nil {
		return nil, err
	}
	device, err := uapi.Open(found.Device, uapi.OpenConfig{Port: found.Port, GIDIndex: &found.GIDIndex})
	if err != nil {
		return nil, err
	}
	return openRings(config, device, addr, k.Rings)
}

// kernelDevice is the kernel's device that has the address; its GIDIndex is
// that of the address.
func kernelDevice(devices []uapi.DeviceInfo, addr netip.Addr) (*uapi.DeviceInfo, error) {
	d, there := onDevice(devices, uapi.KindHost, addr)
	switch {
	case d == nil && len(there) == 0:
		return nil, fmt.Errorf("no RDMA device of the kernel has %v: there is none: %w", addr, syscall.ENODEV)
	case d == nil:
		return nil, fmt.Errorf("no RDMA device of the kernel has %v among its RoCE v2 GIDs; there are %s: %w", addr, strings.Join(there, ", "), syscall.ENODEV)
	case d.PortState != uapi.PortActive:
		return nil, down(d, addr)
	}
	return d, nil
}

// onDevice is the device of a kind with an address, or nil; and the devices of
// that kind with their addresses.
func onDevice(devices []uapi.DeviceInfo, kind uapi.Kind, addr netip.Addr) (found *uapi.DeviceInfo, there []string) {
	for _, d := range devices {
		if d.Kind != kind {
			continue
		}
		var addrs []string
		for _, g := range d.GIDs {
			if g.Type != uapi.RoCEv2 {
				continue
			}
			addrs = append(addrs, g.Addr.String())
			if found == nil && g.Addr == addr.WithZone("") {
				match := d
				match.GIDIndex = g.Index
				found = &match
			}
		}
		there = append(there, fmt.Sprintf("%s (%s)", d.Name, strings.Join(slices.Compact(addrs), " ")))
	}
	return found, there
}

// down is the error of a port that is down.
func down(d *uapi.DeviceInfo, addr netip.Addr) error {
	return fmt.Errorf("the port of %s, which has %v, is %s; set the link of %s up: %w", d.Device, addr, d.PortState, d.NetDev, syscall.ENETDOWN)
}

// rings is the carrier of RDMA: message rings on one device.
type rings struct {
	device *uapi.Device
	name   string
	at     netip.Addr
	config rdmanet.Config
}

// config is that of connections.
func (r Rings) config(protocol string) rdmanet.Config {
	return rdmanet.Config{Ring: r.Ring, MaxChunk: r.MaxChunk, Service: protocol}
}

// at checks the sizes, and returns the address and the devices that there are.
func (r Rings) at(kind, addr string) (at netip.Addr, devices []uapi.DeviceInfo, err error) {
	if err = r.config("").Check(); err == nil {
		at, err = address.Parse(kind, addr)
	}
	if err == nil {
		devices, err = uapi.Devices()
	}
	return at, devices, err
}

// openRings makes the datapath of a device that was opened, or closes it.
func openRings(config *Config, device *uapi.Device, addr netip.Addr, sizes Rings) (Datapath, error) {
	info, err := device.QueryDevice()
	if err == nil && info.PortState != uapi.PortActive {
		err = down(&info, addr)
	}
	if err != nil {
		_ = device.Close()
		return nil, err
	}
	return newMuxed(config, &rings{device, info.Name, addr, sizes.config(config.Protocol)}), nil
}

func (r *rings) addr() netip.Addr { return r.at }

func (r *rings) listen(port int) (net.Listener, error) {
	return rdmanet.ListenOn(r.device, netip.AddrPortFrom(r.at, uint16(port)).String(), r.config)
}

func (r *rings) dial(ctx context.Context, addr string) (net.Conn, error) {
	d := rdmanet.Dialer{Device: r.device, Config: r.config}
	return d.DialContext(ctx, "rdma", addr)
}

func (r *rings) describe(conn net.Conn, s *ConnectionState) {
	c := conn.(*rdmanet.Conn)
	s.Device = r.name
	if local, err := r.device.LocalEndpoint(c.Info().QP); err == nil {
		s.LocalQPN = local.QPN
	}
	if pair, err := r.device.QueryQP(c.Info().QP); err == nil {
		s.RemoteQPN = pair.Remote.QPN
	}
}

func (r *rings) count(conn net.Conn, b *Below) {
	b.CreditWaits += conn.(*rdmanet.Conn).Stats().WriteWaits
}

// rttConns is how many connections there may be for the device's round trips to
// be read: reading takes time that grows with the square of the queue pairs,
// 0.6 s of 2,000 on the soft device.
const rttConns = 100

// countDevice adds what rdma_rxe counts instead where it has no such counter.
func (r *rings) countDevice(conns int, b *Below) {
	b.Device = r.name
	if all, err := r.device.Counters(); err == nil {
		b.Retransmitted = all.Summarize().Retransmitted
	}
	if conns > rttConns {
		return
	}
	if all, err := r.device.Stats(); err == nil {
		for _, pair := range all.QueuePairs {
			if pair.Requester != nil {
				b.measured(pair.Requester.RTT)
			}
		}
	}
}

func (r *rings) abort(conn net.Conn) { _ = conn.(*rdmanet.Conn).SetLinger(0) }

func (r *rings) close(ctx context.Context) error {
	_ = rdmanet.FlushDevice(ctx, r.device)
	return r.device.Close() // which ends all that is left
}
