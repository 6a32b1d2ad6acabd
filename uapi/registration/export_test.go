package registration

import (
	"context"
	"net/netip"

	"github.com/rdmashim/rdmashim/uapi"
)

// OpenHandles are those of the device of a registration on RDMA.
func (r *Registration) OpenHandles() []string {
	return r.datapath.(*muxed).carrier.(*rings).device.OpenHandles()
}

// Sim is RDMA on a private network in memory, which virtual time can drive.
type Sim struct{ Rings Rings }

// Kind is "sim".
func (Sim) Kind() string { return "sim" }

// Open opens a device of its own.
func (s Sim) Open(_ context.Context, config *Config) (Datapath, error) {
	device, err := uapi.Open("sim", uapi.OpenConfig{})
	if err != nil {
		return nil, err
	}
	info, err := device.QueryDevice()
	if err != nil {
		return nil, err
	}
	return openRings(config, device, netip.AddrFrom4(info.Address.Addr().As4()), s.Rings)
}
