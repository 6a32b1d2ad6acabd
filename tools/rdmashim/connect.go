package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"

	"github.com/rdmashim/rdmashim/uapi"
)

// endpoint is one side of a transfer: a device, a queue pair on it, and the
// control connection to the other process.
type endpoint struct {
	rdma   *uapi.Context
	pd     uapi.PD // its own on a device that serves others too, else the context's
	qp     uapi.QP
	ctl    *control
	memory []registered
}

// registered is memory and its region.
type registered struct {
	buf []byte
	mr  uapi.MR
}

// share takes a device that serves other peers too. The endpoint's region and
// queue pair lie in a protection domain of their own, where no other peer
// reaches them.
func (e *endpoint) share(rdma *uapi.Context) (err error) {
	if e.pd, err = rdma.CreatePD(); err == nil {
		e.rdma = rdma
	}
	return err
}

// alloc gives registered memory that lives as long as the endpoint.
func (e *endpoint) alloc(n int, access uapi.Access) ([]byte, uapi.MR, error) {
	buf, err := uapi.Alloc(n)
	if err != nil {
		return nil, 0, err
	}
	mr, err := e.rdma.RegMRWith(buf, uapi.MRConfig{Access: access, PD: e.pd})
	if err != nil {
		_ = uapi.Free(buf)
		return nil, 0, err
	}
	e.memory = append(e.memory, registered{buf, mr})
	return buf, mr, nil
}

// close gives back what the endpoint made; the context may serve others on.
func (e *endpoint) close() error {
	var errs []error
	if e.qp > 0 {
		errs = append(errs, e.rdma.DestroyQP(e.qp))
	}
	for _, m := range e.memory {
		errs = append(errs, e.rdma.DeregMR(m.mr), uapi.Free(m.buf))
	}
	if e.pd > 0 {
		errs = append(errs, e.rdma.DestroyPD(e.pd))
	}
	e.qp, e.memory, e.pd = 0, nil, 0
	return errors.Join(errs...)
}

// openRoute opens the soft device on the address that a control connection uses
// on this side: the one whose packets the route to the peer carries. When
// something holds the RoCE port there (another soft device, a loaded rdma_rxe),
// it takes a free port, which the peer learns from the endpoint.
func openRoute(own net.Addr, options string, stderr io.Writer, config uapi.OpenConfig) (*uapi.Context, error) {
	local, err := netip.ParseAddrPort(own.String())
	if err != nil {
		return nil, fmt.Errorf("the control connection's own address %v: %w", own, err)
	}
	name := softAt(local.Addr())
	c, err := open(withOptions(name, options), stderr, config)
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EINVAL) {
		if free, freeErr := open(withOptions(name, withPort(options)), stderr, config); freeErr == nil {
			return free, nil
		}
	}
	return c, err
}

func withPort(options string) string {
	if options == "" {
		return "port=0"
	}
	return options + "&port=0"
}

// describe says what was opened and chosen.
func describe(c *uapi.Context) (side, error) {
	info, err := c.QueryDevice()
	if err != nil {
		return side{}, err
	}
	s := side{Device: info.Device, MTU: info.MTU}
	if len(info.GIDs) > 1 {
		s.Note = info.GIDReason
	}
	if info.Address.IsValid() {
		s.Address = info.Address.String()
	}
	for _, g := range info.GIDs {
		if g.Index == info.GIDIndex {
			s.GID = fmt.Sprintf("%d (%s, %s)", g.Index, g.Addr, g.Type)
		}
	}
	return s, nil
}

// createQP makes the queue pair, ready to take receives.
func (e *endpoint) createQP(sends, receives int) (err error) {
	if e.qp, err = e.rdma.CreateQPWith(uapi.QPConfig{SendDepth: sends, RecvDepth: receives, PD: e.pd}); err != nil {
		return err
	}
	_, err = e.rdma.LocalEndpoint(e.qp)
	return err
}

// connect introduces both sides to each other and connects the queue pairs.
// It returns the peer's regions.
func (e *endpoint) connect(ctx context.Context, regions ...uapi.MR) ([]uapi.Region, error) {
	limited, cancel := context.WithTimeout(ctx, peerSilence)
	defer cancel()
	peer, err := e.rdma.ConnectOver(limited, e.ctl.conn, e.qp, regions, nil)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else {
			err = gone(err)
		}
		return nil, fmt.Errorf("connect to the other process, with nothing moved yet: %w", err)
	}
	return peer.Regions, nil
}

// gone says that the peer went away where an exchange with it broke off.
func gone(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w (%w)", errPeerGone, err)
	}
	return err
}

// next waits for one completion and checks that it is a success.
func (e *endpoint) next(ctx context.Context, what string) (uapi.WC, error) {
	var wc [1]uapi.WC
	if _, err := e.rdma.WaitCQ(ctx, e.qp, wc[:]); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return uapi.WC{}, fmt.Errorf("%s: %w", what, err)
	}
	if err := wc[0].Err(); err != nil {
		return uapi.WC{}, fmt.Errorf("%s: %w", what, err)
	}
	return wc[0], nil
}
