package uapi

import (
	"context"
	"net"
	"net/netip"
	"os"
	"sync"
)

// The default context is what the package functions work on.
var defaults struct {
	mu     sync.Mutex
	ctx    *Context   // guarded by mu; nil until first used
	handed int        // guarded by mu: how often ctx was given to a caller
	more   []*Context // guarded by mu: opened by Listen, whose addresses ctx lacks
}

// Default is the context behind the package functions. The first use opens it
// with the device that RDMASHIM_DEVICE names, else "soft"; an error is
// returned by every function until opening succeeds.
func Default() (*Context, error) {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if defaults.ctx == nil {
		ctx, err := Open("")
		if err != nil {
			return nil, err
		}
		defaults.ctx, defaults.handed = ctx, 0
	}
	defaults.handed++
	return defaults.ctx, nil
}

// Close closes the default context, if it is open, and those that Listen opened.
// The next package function opens a new one; handles of the old one answer EBADF
// there.
func Close() error {
	defaults.mu.Lock()
	list := defaults.more
	if defaults.ctx != nil {
		list = append(list, defaults.ctx)
	}
	defaults.ctx, defaults.more = nil, nil
	defaults.mu.Unlock()
	var err error
	for _, c := range list {
		if e := c.Close(); err == nil {
			err = e
		}
	}
	return err
}

// defaultDeviceName is what Open("") opens.
func defaultDeviceName() string {
	if name := os.Getenv("RDMASHIM_DEVICE"); name != "" {
		return name
	}
	return DefaultDevice
}

// RegMR is Context.RegMR on the default context.
func RegMR(buf []byte, access Access) (MR, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.RegMR(buf, access)
}

// DeregMR is Context.DeregMR on the default context.
func DeregMR(mr MR) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.DeregMR(mr)
}

// CreateQP is Context.CreateQP on the default context.
func CreateQP(sendCQSize, recvCQSize int) (QP, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.CreateQP(sendCQSize, recvCQSize)
}

// CreateQPWith is Context.CreateQPWith on the default context.
func CreateQPWith(config QPConfig) (QP, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.CreateQPWith(config)
}

// DestroyQP is Context.DestroyQP on the default context.
func DestroyQP(qp QP) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.DestroyQP(qp)
}

// CreateCQ is Context.CreateCQ on the default context.
func CreateCQ(size int) (CQ, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.CreateCQ(size)
}

// DestroyCQ is Context.DestroyCQ on the default context.
func DestroyCQ(cq CQ) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.DestroyCQ(cq)
}

// ResizeCQ is Context.ResizeCQ on the default context.
func ResizeCQ(cq CQ, size int) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.ResizeCQ(cq, size)
}

// ReRegMR is Context.ReRegMR on the default context.
func ReRegMR(mr MR, buf []byte, access Access) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.ReRegMR(mr, buf, access)
}

// CreateAH is Context.CreateAH on the default context.
func CreateAH(remote netip.AddrPort) (AH, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.CreateAH(remote)
}

// DestroyAH is Context.DestroyAH on the default context.
func DestroyAH(ah AH) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.DestroyAH(ah)
}

// PostWrite is Context.PostWrite on the default context.
func PostWrite(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostWrite(qp, mr, localOffset, remoteAddr, rkey, length)
}

// PostWriteImm is Context.PostWriteImm on the default context.
func PostWriteImm(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64, imm uint32) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostWriteImm(qp, mr, localOffset, remoteAddr, rkey, length, imm)
}

// PostRead is Context.PostRead on the default context.
func PostRead(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostRead(qp, mr, localOffset, remoteAddr, rkey, length)
}

// PostSend is Context.PostSend on the default context.
func PostSend(qp QP, mr MR, length uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostSend(qp, mr, length)
}

// PostSendTo is Context.PostSendTo on the default context.
func PostSendTo(qp QP, ah AH, remoteQPN, remoteQKey uint32, mr MR, localOffset, length uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostSendTo(qp, ah, remoteQPN, remoteQKey, mr, localOffset, length)
}

// PostSendImm is Context.PostSendImm on the default context.
func PostSendImm(qp QP, mr MR, length uint64, imm uint32) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostSendImm(qp, mr, length, imm)
}

// PostRecv is Context.PostRecv on the default context.
func PostRecv(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostRecv(qp, mr, localOffset, length)
}

// PostFetchAdd is Context.PostFetchAdd on the default context.
func PostFetchAdd(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, add uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostFetchAdd(qp, mr, localOffset, remoteAddr, rkey, add)
}

// PostCompareSwap is Context.PostCompareSwap on the default context.
func PostCompareSwap(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, compare, swap uint64) (WRID, error) {
	c, err := Default()
	if err != nil {
		return -1, err
	}
	return c.PostCompareSwap(qp, mr, localOffset, remoteAddr, rkey, compare, swap)
}

// Post is Context.Post on the default context.
func Post(qp QP, wrs []WR) (int, error) {
	c, err := Default()
	if err != nil {
		return 0, err
	}
	return c.Post(qp, wrs)
}

// PollCQ is Context.PollCQ on the default context.
func PollCQ(qp QP, wc []WC) (int, error) {
	c, err := Default()
	if err != nil {
		return noCompletion(wc, err)
	}
	return c.PollCQ(qp, wc)
}

// WaitCQ is Context.WaitCQ on the default context.
func WaitCQ(ctx context.Context, qp QP, wc []WC) (int, error) {
	c, err := Default()
	if err != nil {
		return noCompletion(wc, err)
	}
	return c.WaitCQ(ctx, qp, wc)
}

// Poll is Context.Poll on the default context.
func Poll(cq CQ, wc []WC) (int, error) {
	c, err := Default()
	if err != nil {
		return 0, err
	}
	return c.Poll(cq, wc)
}

// Wait is Context.Wait on the default context.
func Wait(ctx context.Context, cq CQ, wc []WC) (int, error) {
	c, err := Default()
	if err != nil {
		return 0, err
	}
	return c.Wait(ctx, cq, wc)
}

// LocalEndpoint is Context.LocalEndpoint on the default context.
func LocalEndpoint(qp QP) (Endpoint, error) {
	c, err := Default()
	if err != nil {
		return Endpoint{}, err
	}
	return c.LocalEndpoint(qp)
}

// ConnectQP is Context.ConnectQP on the default context.
func ConnectQP(qp QP, remote Endpoint) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.ConnectQP(qp, remote)
}

// ConnectOver is Context.ConnectOver on the default context.
func ConnectOver(ctx context.Context, conn net.Conn, qp QP, mrs []MR, data []byte) (Introduction, error) {
	c, err := Default()
	if err != nil {
		return Introduction{}, err
	}
	return c.ConnectOver(ctx, conn, qp, mrs, data)
}

// DisconnectQP is Context.DisconnectQP on the default context.
func DisconnectQP(qp QP) error {
	c, err := Default()
	if err != nil {
		return err
	}
	return c.DisconnectQP(qp)
}

// QueryMR is Context.QueryMR on the default context.
func QueryMR(mr MR) (MRInfo, error) {
	c, err := Default()
	if err != nil {
		return MRInfo{}, err
	}
	return c.QueryMR(mr)
}

// QueryQP is Context.QueryQP on the default context.
func QueryQP(qp QP) (QPInfo, error) {
	c, err := Default()
	if err != nil {
		return QPInfo{}, err
	}
	return c.QueryQP(qp)
}

// QueryDevice is Context.QueryDevice on the default context.
func QueryDevice() (DeviceInfo, error) {
	c, err := Default()
	if err != nil {
		return DeviceInfo{}, err
	}
	return c.QueryDevice()
}

// Stats is Context.Stats on the default context.
func Stats() (DeviceStats, error) {
	c, err := Default()
	if err != nil {
		return DeviceStats{}, err
	}
	return c.Stats()
}
