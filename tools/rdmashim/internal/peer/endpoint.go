package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmashim/rdmashim/uapi"
)

// Endpoint is a queue pair of a device and memory for it. A server's device
// serves others too: its endpoints lie in protection domains of their own.
type Endpoint struct {
	RDMA   *uapi.Context
	PD     uapi.PD // 0: the device's
	QP     uapi.QP
	Memory []Memory
}

// Memory is a buffer and its region.
type Memory struct {
	Buf []byte
	MR  uapi.MR
}

// Share puts the endpoint on a device that serves other peers too. Its regions
// and its queue pair lie in a protection domain of their own, where no other
// peer reaches them.
func (e *Endpoint) Share(rdma *uapi.Context) (err error) {
	e.RDMA = rdma
	e.PD, err = rdma.CreatePD()
	return err
}

// Alloc gives registered memory that lives as long as the endpoint.
func (e *Endpoint) Alloc(n int, access uapi.Access) (Memory, error) {
	buf, err := uapi.Alloc(n)
	if err != nil {
		return Memory{}, err
	}
	mr, err := e.RDMA.RegMRWith(buf, uapi.MRConfig{Access: access, PD: e.PD})
	if err != nil {
		_ = uapi.Free(buf)
		return Memory{}, err
	}
	m := Memory{buf, mr}
	e.Memory = append(e.Memory, m)
	return m, nil
}

// CreateQP makes the queue pair, ready to take receives.
func (e *Endpoint) CreateQP(sends, receives int) (err error) {
	if e.QP, err = e.RDMA.CreateQPWith(uapi.QPConfig{SendDepth: sends, RecvDepth: receives, PD: e.PD}); err == nil {
		_, err = e.RDMA.LocalEndpoint(e.QP)
	}
	return err
}

// Connect introduces both sides to each other over the control connection and
// connects the queue pairs. It returns the peer's regions.
func (e *Endpoint) Connect(ctx context.Context, c *Conn, regions ...uapi.MR) ([]uapi.Region, error) {
	limited, cancel := context.WithTimeout(ctx, Silence)
	defer cancel()
	peer, err := e.RDMA.ConnectOver(limited, c.Conn, e.QP, regions, nil)
	if err != nil {
		return nil, fmt.Errorf("connect to the other process, with nothing moved yet: %w", Cause(ctx, Gone(err)))
	}
	return peer.Regions, nil
}

// Next waits for one completion and checks that it is a success.
func (e *Endpoint) Next(ctx context.Context, what string) (uapi.WC, error) {
	var wc [1]uapi.WC
	_, err := e.RDMA.WaitCQ(ctx, e.QP, wc[:])
	if err = Cause(ctx, err); err == nil {
		err = wc[0].Err()
	}
	if err != nil {
		return uapi.WC{}, fmt.Errorf("%s: %w", what, err)
	}
	return wc[0], nil
}

// Close gives back what the endpoint made; the device may serve others on.
func (e *Endpoint) Close() error {
	var errs []error
	if e.QP > 0 {
		errs = append(errs, e.RDMA.DestroyQP(e.QP))
	}
	for _, m := range e.Memory {
		errs = append(errs, e.RDMA.DeregMR(m.MR), uapi.Free(m.Buf))
	}
	if e.PD > 0 {
		errs = append(errs, e.RDMA.DestroyPD(e.PD))
	}
	e.QP, e.Memory, e.PD = 0, nil, 0
	return errors.Join(errs...)
}
