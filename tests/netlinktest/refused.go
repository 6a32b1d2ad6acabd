package netlinktest

import (
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
)

// Refusal is a request that a kernel does not grant.
type Refusal struct {
	Name string
	netlinkmgr.Request
	Errno syscall.Errno // 0: it is granted after all
}

// Refusals are requests about a device of that index, which has one port and is
// the last one, and how Linux 6.1 refuses them.
func Refusals(index uint32) []Refusal {
	about := func(more ...any) []byte { return nldev.Encode(append([]any{"DEV_INDEX", index}, more...)...) }
	other, short := nldev.Encode("DEV_INDEX", index+1), nldev.Encode("DEV_INDEX", uint8(0))
	const port2, none = uint32(2), uint32(1 << 31)
	return []Refusal{
		{"no device", netlinkmgr.Request{Command: "GET"}, syscall.EINVAL},
		{"no such device", netlinkmgr.Request{Command: "GET", Attrs: other}, syscall.EINVAL},
		{"no such device, to delete", netlinkmgr.Request{Command: "DELLINK", Attrs: other}, syscall.EINVAL},
		{"no such device, all objects", netlinkmgr.Request{Command: "RES_QP_GET", Dump: true, Attrs: other}, syscall.EINVAL},
		{"no device, all objects", netlinkmgr.Request{Command: "RES_QP_GET", Dump: true}, syscall.EINVAL},
		{"a short number", netlinkmgr.Request{Command: "GET", Attrs: short}, syscall.EINVAL},
		{"a short number, all ports", netlinkmgr.Request{Command: "PORT_GET", Dump: true, Attrs: short}, syscall.EINVAL},
		{"no port", netlinkmgr.Request{Command: "PORT_GET", Attrs: about()}, syscall.EINVAL},
		{"port 0", netlinkmgr.Request{Command: "PORT_GET", Attrs: about("PORT_INDEX", uint32(0))}, syscall.EINVAL},
		{"port 2", netlinkmgr.Request{Command: "PORT_GET", Attrs: about("PORT_INDEX", port2)}, syscall.EINVAL},
		{"port 257", netlinkmgr.Request{Command: "PORT_GET", Attrs: about("PORT_INDEX", uint32(257))}, syscall.EINVAL},
		{"port 2, all objects", netlinkmgr.Request{Command: "RES_QP_GET", Dump: true, Attrs: about("PORT_INDEX", port2)}, syscall.EINVAL},
		{"all of what is one", netlinkmgr.Request{Command: "SYS_GET", Dump: true}, syscall.EINVAL},
		{"no id", netlinkmgr.Request{Command: "RES_PD_GET", Attrs: about()}, syscall.EINVAL},
		{"no such domain", netlinkmgr.Request{Command: "RES_PD_GET", Attrs: about("RES_PDN", none)}, syscall.ENOENT},
		{"no such queue pair", netlinkmgr.Request{Command: "RES_QP_GET", Attrs: about("PORT_INDEX", uint32(1), "RES_LQPN", none)}, syscall.ENOENT},
		{"a domain of a port", netlinkmgr.Request{Command: "RES_PD_GET", Attrs: about("PORT_INDEX", uint32(1), "RES_PDN", none)}, syscall.EINVAL},
		{"a queue pair of no port", netlinkmgr.Request{Command: "RES_QP_GET", Attrs: about("RES_LQPN", none)}, syscall.EINVAL},
		{"no kind of file", netlinkmgr.Request{Command: "GET_CHARDEV", Attrs: about()}, syscall.EINVAL},
		{"another kind of file", netlinkmgr.Request{Command: "GET_CHARDEV", Attrs: about("CHARDEV_TYPE", "none")}, syscall.EOPNOTSUPP},
		{"a file of a port without a device", netlinkmgr.Request{Command: "GET_CHARDEV", Attrs: nldev.Encode("CHARDEV_TYPE", "rdma_cm", "PORT_INDEX", uint32(1))}, syscall.EINVAL},
		{"uverbs without a device", netlinkmgr.Request{Command: "GET_CHARDEV", Attrs: nldev.Encode("CHARDEV_TYPE", "uverbs")}, syscall.EOPNOTSUPP},
		{"rdma_cm of a device", netlinkmgr.Request{Command: "GET_CHARDEV", Attrs: about("CHARDEV_TYPE", "rdma_cm")}, syscall.EOPNOTSUPP},
		{"rdma_cm", netlinkmgr.Request{Command: "GET_CHARDEV", Attrs: nldev.Encode("CHARDEV_TYPE", "rdma_cm")}, 0},
	}
}
