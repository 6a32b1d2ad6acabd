//go:build !linux

package doctor

import (
	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/uapi"
)

// Running is this machine, of which little is known: only Linux has RDMA
// devices and tells of its network.
func Running() (System, error) {
	return System{
		Open:       func(device string) (*uapi.Device, error) { return uapi.Open(device, uapi.OpenConfig{}) },
		Library:    preload.Possible,
		Supervisor: notif.Check,
	}, nil
}
