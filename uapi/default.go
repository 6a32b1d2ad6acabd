package uapi

import (
	"context"
	"net"
	"os"
	"sync"
)

// The package functions work on the default context.
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
	c, _, err := defaultContext(func() (*Context, error) { return Open("") })
	return c, err
}

// defaultContext returns the default context. It opens it first where that is
// needed, which makes it fresh.
func defaultContext(open func() (*Context, error)) (c *Context, fresh bool, err error) {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if fresh = defaults.ctx == nil; fresh {
		if defaults.ctx, err = open(); err != nil {
			defaults.ctx = nil
			return nil, false, err
		}
		defaults.handed = 0
	}
	defaults.handed++
	return defaults.ctx, fresh, nil
}

// withdraw closes the default context, which was opened for the caller, unless
// another caller was given it too.
func withdraw(c *Context) bool {
	defaults.mu.Lock()
	defer defaults.mu.Unlock()
	if defaults.ctx != c || defaults.handed > 1 {
		return false
	}
	defaults.ctx = nil
	_ = c.Close()
	return true
}

// Close closes the default context, if it is open, and the contexts that Listen
// opened. The next package function opens a new one; handles of the old one
// answer EBADF there.
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

// orVariable returns the name of a device that was asked for, else what
// RDMASHIM_DEVICE names; "" for neither. label is what errors call it.
func orVariable(device string) (name, label string) {
	if device == "" {
		if device = os.Getenv("RDMASHIM_DEVICE"); device != "" {
			return device, "RDMASHIM_DEVICE=" + device
		}
	}
	return device, device
}

// orDefault is orVariable for Open, which an empty name gives DefaultDevice.
func orDefault(device string) (name, label string) {
	if name, label = orVariable(device); name == "" {
		return DefaultDevice, DefaultDevice
	}
	return name, label
}

// onDefault makes a call on the default context. It returns failed if that does
// not open.
func onDefault[T any](failed T, call func(c *Context) (T, error)) (T, error) {
	c, err := Default()
	if err != nil {
		return failed, err
	}
	return call(c)
}

// RegMR is Context.RegMR on the default context.
func RegMR(buf []byte, access Access) (MR, error) {
	return onDefault(-1, func(c *Context) (MR, error) { return c.RegMR(buf, access) })
}

// DeregMR is Context.DeregMR on the default context.
func DeregMR(mr MR) error {
	c, err := Default()
	if err == nil {
		err = c.DeregMR(mr)
	}
	return err
}

// CreateQP is Context.CreateQP on the default context.
func CreateQP(sendCQSize, recvCQSize int) (QP, error) {
	return onDefault(-1, func(c *Context) (QP, error) { return c.CreateQP(sendCQSize, recvCQSize) })
}

// DestroyQP is Context.DestroyQP on the default context.
func DestroyQP(qp QP) error {
	c, err := Default()
	if err == nil {
		err = c.DestroyQP(qp)
	}
	return err
}

// PostWrite is Context.PostWrite on the default context.
func PostWrite(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return onDefault(-1, func(c *Context) (WRID, error) { return c.PostWrite(qp, mr, localOffset, remoteAddr, rkey, length) })
}

// PostRead is Context.PostRead on the default context.
func PostRead(qp QP, mr MR, localOffset, remoteAddr uint64, rkey uint32, length uint64) (WRID, error) {
	return onDefault(-1, func(c *Context) (WRID, error) { return c.PostRead(qp, mr, localOffset, remoteAddr, rkey, length) })
}

// PostSend is Context.PostSend on the default context.
func PostSend(qp QP, mr MR, length uint64) (WRID, error) {
	return onDefault(-1, func(c *Context) (WRID, error) { return c.PostSend(qp, mr, length) })
}

// PostRecv is Context.PostRecv on the default context.
func PostRecv(qp QP, mr MR, localOffset, length uint64) (WRID, error) {
	return onDefault(-1, func(c *Context) (WRID, error) { return c.PostRecv(qp, mr, localOffset, length) })
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

// LocalEndpoint is Context.LocalEndpoint on the default context.
func LocalEndpoint(qp QP) (Endpoint, error) {
	return onDefault(Endpoint{}, func(c *Context) (Endpoint, error) { return c.LocalEndpoint(qp) })
}

// ConnectQP is Context.ConnectQP on the default context.
func ConnectQP(qp QP, remote Endpoint) error {
	c, err := Default()
	if err == nil {
		err = c.ConnectQP(qp, remote)
	}
	return err
}

// ConnectOver is Context.ConnectOver on the default context.
func ConnectOver(ctx context.Context, conn net.Conn, qp QP, mrs []MR, data []byte) (Introduction, error) {
	return onDefault(Introduction{}, func(c *Context) (Introduction, error) { return c.ConnectOver(ctx, conn, qp, mrs, data) })
}

// QueryMR is Context.QueryMR on the default context.
func QueryMR(mr MR) (MRInfo, error) {
	return onDefault(MRInfo{}, func(c *Context) (MRInfo, error) { return c.QueryMR(mr) })
}
