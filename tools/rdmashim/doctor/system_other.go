//go:build !linux

package doctor

import (
	"context"
	"io/fs"
	"net"
	"net/netip"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi"
)

// Running is this machine, of which little is known: only Linux has RDMA
// devices and tells of its network.
func Running() (System, error) {
	return System{
		Kernel: netlinkmgr.Kernel{NetDevs: netDevs, Root: noFiles{}},
		Open:   func(device string) (*uapi.Context, error) { return uapi.Open(device) },
	}, nil
}

type noFiles struct{}

func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func netDevs(context.Context) ([]netlinkmgr.NetDev, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []netlinkmgr.NetDev
	for _, i := range ifs {
		d := netlinkmgr.NetDev{
			Index: i.Index, Name: i.Name, MTU: i.MTU, MAC: i.HardwareAddr.String(),
			Loopback: i.Flags&net.FlagLoopback != 0, Up: i.Flags&net.FlagUp != 0, Carrier: i.Flags&net.FlagRunning != 0,
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				d.Addrs = append(d.Addrs, netlinkmgr.NetAddr{Prefix: p})
			}
		}
		list = append(list, d)
	}
	return list, nil
}
