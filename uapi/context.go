package uapi

import (
	"context"
	"syscall"
)

// Context is an open device and all that a program made on it. Its methods
// are safe for concurrent use; requests of one queue pair take effect in the
// order in which they were posted.
type Context struct {
}

// Open opens a device by name; "" is RDMASHIM_DEVICE or "soft".
//
//	soft             soft RNIC on the first free of 127.0.0.1 … 127.0.0.16
//	soft:10.0.0.1    on that address; soft:[::1]
//	sim              private soft RNIC on an in-memory network
//	sim?net=NAME     on an in-memory network shared in this process
//	rxe0, host:rxe0  the real kernel's device
//
// Options follow a question mark: soft?loss=1%&seed=7.
func Open(device string, opts ...Option) (*Context, error) { return nil, syscall.ENOTSUP }

// RegMR registers a memory region for RDMA operations.
func (c *Context) RegMR(buf []byte, access Access) (MR, error) { return -1, syscall.ENOTSUP }

// DeregMR deregisters a previously registered memory region.
func (c *Context) DeregMR(mr MR) error { return syscall.ENOTSUP }

// CreateQP creates a queue pair for RDMA communication.
func (c *Context) CreateQP(sendCQSize, recvCQSize int) (QP, error) { return -1, syscall.ENOTSUP }

// CreateQPWith creates a queue pair as configured.
func (c *Context) CreateQPWith(config QPConfig) (QP, error) { return -1, syscall.ENOTSUP }

// DestroyQP destroys a queue pair.
func (c *Context) DestroyQP(qp QP) error { return syscall.ENOTSUP }

// CreateCQ creates a completion queue of size entries.
func (c *Context) CreateCQ(size int) (CQ, error) { return -1, syscall.ENOTSUP }

// DestroyCQ destroys a completion queue that no queue pair uses (else EBUSY).
func (c *Context) DestroyCQ(cq CQ) error { return syscall.ENOTSUP }

// PostWrite posts an RDMA WRITE operation.
func (c *Context) PostWrite(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// PostWriteImm posts an RDMA WRITE that also uses up a receive of the peer.
func (c *Context) PostWriteImm(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64, imm uint32) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// PostRead posts an RDMA READ operation.
func (c *Context) PostRead(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// PostSend posts an RDMA SEND operation (message passing).
func (c *Context) PostSend(qp QP, mr MR, length uint64) (WRID, error) { return -1, syscall.ENOTSUP }

// PostSendImm posts an RDMA SEND with an immediate.
func (c *Context) PostSendImm(qp QP, mr MR, length uint64, imm uint32) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// PostRecv posts a receive.
func (c *Context) PostRecv(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// PostFetchAdd posts an atomic addition to 8 bytes of the peer's memory.
func (c *Context) PostFetchAdd(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, add uint64) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// PostCompareSwap posts an atomic compare-and-swap of 8 bytes.
func (c *Context) PostCompareSwap(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, compare, swap uint64) (WRID, error) {
	return -1, syscall.ENOTSUP
}

// Post posts work requests in order and returns how many were posted.
func (c *Context) Post(qp QP, wrs []WR) (int, error) { return 0, syscall.ENOTSUP }

// PollCQ polls the completion queues of a queue pair.
func (c *Context) PollCQ(qp QP, wc []WC) (int, error) { return -1, syscall.ENOTSUP }

// WaitCQ is PollCQ that waits for at least one completion.
func (c *Context) WaitCQ(ctx context.Context, qp QP, wc []WC) (int, error) {
	return 0, syscall.ENOTSUP
}

// Poll polls a completion queue.
func (c *Context) Poll(cq CQ, wc []WC) (int, error) { return 0, syscall.ENOTSUP }

// Wait is Poll that waits for at least one completion.
func (c *Context) Wait(ctx context.Context, cq CQ, wc []WC) (int, error) { return 0, syscall.ENOTSUP }

// LocalEndpoint is what the peer's ConnectQP needs to know.
func (c *Context) LocalEndpoint(qp QP) (Endpoint, error) { return Endpoint{}, syscall.ENOTSUP }

// ConnectQP connects a queue pair to the peer's.
func (c *Context) ConnectQP(qp QP, remote Endpoint) error { return syscall.ENOTSUP }

// DisconnectQP moves a queue pair to the error state; what is outstanding
// completes with WCWRFlushErr.
func (c *Context) DisconnectQP(qp QP) error { return syscall.ENOTSUP }

// QueryMR describes a memory region.
func (c *Context) QueryMR(mr MR) (MRInfo, error) { return MRInfo{}, syscall.ENOTSUP }

// QueryQP describes a queue pair.
func (c *Context) QueryQP(qp QP) (QPInfo, error) { return QPInfo{}, syscall.ENOTSUP }

// QueryDevice describes the device and what was chosen on it.
func (c *Context) QueryDevice() (DeviceInfo, error) { return DeviceInfo{}, syscall.ENOTSUP }

// Counters reads the device's counters.
func (c *Context) Counters() (Counters, error) { return nil, syscall.ENOTSUP }

// QPCounters reads a queue pair's counters.
func (c *Context) QPCounters(qp QP) (Counters, error) { return nil, syscall.ENOTSUP }

// OpenHandles lists what was made on the context and not destroyed yet, with
// the place in the program that made it.
func (c *Context) OpenHandles() []string { return nil }

// Close destroys everything that was made on the context and closes it.
func (c *Context) Close() error { return nil }

// Devices lists the devices that Open can open here.
func Devices() ([]DeviceInfo, error) { return nil, syscall.ENOTSUP }
