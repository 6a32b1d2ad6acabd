package rdmanl

import (
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
	"github.com/rdmashim/rdmashim/kshim/nldev"
)

// Server answers the requests of one process's sockets. It may be used by
// several goroutines.
type Server struct {
	Process *emu.Process
	PID     int // the owner of its objects
	// PIDOf returns the PID of another owner of objects; nil is PID for all.
	PIDOf func(owner *emu.Process) int
	// Beside returns the attributes of the messages by which other processes
	// answer the same request; nil is none.
	Beside func(request []byte) [][]byte
}

// query is a request on its way.
type query struct {
	server *Server
	sent   *message
	attrs  attributes
}

// attributes are those that requests carry. A nil pointer is an attribute that
// was not sent.
type attributes struct {
	Index *uint32 `nldev:"DEV_INDEX"`
	Port  *uint32 `nldev:"PORT_INDEX"`
	File  *string `nldev:"CHARDEV_TYPE"`

	PDN  *uint32 `nldev:"RES_PDN"`
	CQN  *uint32 `nldev:"RES_CQN"`
	QPN  *uint32 `nldev:"RES_LQPN"`
	CMN  *uint32 `nldev:"RES_CM_IDN"`
	MRN  *uint32 `nldev:"RES_MRN"`
	CTXN *uint32 `nldev:"RES_CTXN"`
	SRQN *uint32 `nldev:"RES_SRQN"`
}

// command answers a request, or a dump with a payload for each message. A nil
// function is EINVAL.
type command struct {
	one func(*query) ([]byte, error)
	all func(*query) ([][]byte, error)
}

// commands are those that this kernel knows, by number.
var commands = sync.OnceValue(func() map[uint16]*command {
	list := map[uint16]*command{
		nldev.Command("GET"):         {onDevice(deviceInfo), each(deviceInfo)},
		nldev.Command("PORT_GET"):    {onDevice(portGet), ports},
		nldev.Command("SYS_GET"):     {system, nil},
		nldev.Command("GET_CHARDEV"): {charDev, nil},
		nldev.Command("RES_GET"):     {onDevice(summary), each(summary)},
	}
	for i := range kinds {
		k := &kinds[i]
		list[nldev.Command(k.command)] = &command{k.one, k.dump}
	}
	return list
})

// device finds the one that the request is about.
func (q *query) device() (d emu.DeviceInfo, err error) {
	if q.attrs.Index != nil {
		for _, d := range q.server.Process.Devices() {
			if uint32(d.Index) == *q.attrs.Index {
				return d, nil
			}
		}
	}
	return d, syscall.EINVAL
}

// port is the one that the request names; 0 if it names none.
func (q *query) port(d emu.DeviceInfo) (uint8, error) {
	n := q.attrs.Port
	switch {
	case n == nil:
		return 0, nil
	case *n < 1 || *n > uint32(d.QueryDevice().PhysPortCnt):
		return 0, syscall.EINVAL
	}
	return uint8(*n), nil
}

func onDevice(f func(*query, emu.DeviceInfo) ([]byte, error)) func(*query) ([]byte, error) {
	return func(q *query) ([]byte, error) {
		d, err := q.device()
		if err != nil {
			return nil, err
		}
		return f(q, d)
	}
}

func each(f func(*query, emu.DeviceInfo) ([]byte, error)) func(*query) ([][]byte, error) {
	return func(q *query) (list [][]byte, err error) {
		for _, d := range q.server.Process.Devices() {
			payload, err := f(q, d)
			if err != nil {
				return list, err
			}
			list = append(list, payload)
		}
		return list, nil
	}
}

// handle is what every answer about a device begins with (fill_nldev_handle).
func handle(d emu.DeviceInfo, more ...any) []byte {
	return nldev.Encode(append([]any{"DEV_INDEX", uint32(d.Index), "DEV_NAME", d.Name()}, more...)...)
}

func deviceInfo(_ *query, d emu.DeviceInfo) ([]byte, error) {
	a := d.QueryDevice()
	return handle(d, "PORT_INDEX", uint32(a.PhysPortCnt), "CAP_FLAGS", uint64(a.DeviceCapFlags),
		"NODE_GUID", a.NodeGUID, "SYS_IMAGE_GUID", a.SysImageGUID, "DEV_NODE_TYPE", uint8(abi.NodeIBCA),
		"DEV_DIM", uint8(0), "DEV_PROTOCOL", "roce"), nil
}

func portGet(q *query, d emu.DeviceInfo) ([]byte, error) {
	port, err := q.port(d)
	if err == nil && port == 0 {
		err = syscall.EINVAL
	}
	if err != nil {
		return nil, err
	}
	return portInfo(d, port)
}

func ports(q *query) (list [][]byte, err error) {
	d, err := q.device()
	if err != nil {
		return nil, err
	}
	for port := range d.QueryDevice().PhysPortCnt {
		payload, err := portInfo(d, port+1)
		if err != nil {
			return list, err
		}
		list = append(list, payload)
	}
	return list, nil
}

func portInfo(d emu.DeviceInfo, port uint8) ([]byte, error) {
	a, err := d.QueryPort(port)
	if err != nil {
		return nil, err
	}
	b := handle(d, "PORT_INDEX", uint32(port), "PORT_STATE", uint8(a.State), "PORT_PHYS_STATE", uint8(a.PhysState))
	for _, gid := range d.GIDs(port) {
		if gid.IfIndex != 0 {
			return append(b, nldev.Encode("NDEV_INDEX", gid.IfIndex, "NDEV_NAME", gid.NetDev)...), nil
		}
	}
	return b, nil
}

func system(*query) ([]byte, error) {
	return nldev.Encode("NETNS_MODE", uint8(1), "PRIVILEGED_QKEY_MODE", uint8(0), "COPY_ON_FORK", uint8(1)), nil
}

// charDev is GET_CHARDEV. Linux has EOPNOTSUPP for files that it does not know
// (core/device.c: ib_get_client_nl_info).
func charDev(q *query) ([]byte, error) {
	a := &q.attrs
	if a.File == nil || a.Index == nil && a.Port != nil {
		return nil, syscall.EINVAL
	}
	var file *emu.CharDev
	var b []byte
	if a.Index == nil && *a.File == "rdma_cm" {
		file = q.server.Process.CM()
	}
	if a.Index != nil {
		d, err := q.device()
		if err == nil {
			_, err = q.port(d)
		}
		if err != nil {
			return nil, err
		}
		if *a.File == "uverbs" {
			file, b = d.Node, nldev.Encode("UVERBS_DRIVER_ID", d.DriverID())
		}
	}
	if file == nil {
		return nil, syscall.EOPNOTSUPP
	}
	return append(b, nldev.Encode("CHARDEV", file.Number, "CHARDEV_ABI", uint64(file.ABI), "CHARDEV_NAME", file.Name)...), nil
}
