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
	RDMA   *uapi.Device
	PD     uapi.PD // 0: the device's
	QP     uapi.QP
	Memory []Memory
}

// Memory is a buffer and its region.
type Memory struct {
	Buf  []byte
	MR   uapi.MR
	heap bool
}

// Share puts the endpoint on a device that serves other peers too. Its regions
// and its queue pair lie in a protection domain of their own, where no other
// peer reaches them.
func (e *Endpoint) Share(rdma *uapi.Device) (err error) {
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
	m, err := e.register(Memory{Buf: buf}, access)
	if err != nil {
		_ = uapi.Free(buf)
	}
	return m, err
}

// AllocHeap is Alloc of Go's heap.
func (e *Endpoint) AllocHeap(n int, access uapi.Access) (Memory, error) {
	return e.register(Memory{Buf: make([]byte, n), heap: true}, access)
}

func (e *Endpoint) register(m Memory, access uapi.Access) (_ Memory, err error) {
	if m.MR, err = e.RDMA.RegMRWith(m.Buf, uapi.MRConfig{Access: access, PD: e.PD}); err == nil {
		e.Memory = append(e.Memory, m)
	}
	return m, err
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

// Close gives back the objects that the endpoint made; the device may serve
// others on.
func (e *Endpoint) Close() error {
	var errs []error
	if e.QP > 0 {
		errs = append(errs, e.RDMA.DestroyQP(e.QP))
	}
	for _, m := range e.Memory {
		errs = append(errs, e.RDMA.DeregMR(m.MR))
		if !m.heap {
			errs = append(errs, uapi.Free(m.Buf))
		}
	}
	if e.PD > 0 {
		errs = append(errs, e.RDMA.DestroyPD(e.PD))
	}
	e.QP, e.Memory, e.PD = 0, nil, 0
	return errors.Join(errs...)
}
