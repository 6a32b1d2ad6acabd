package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

// DefaultBacklog is how many requests a listener keeps when nothing else is
// said: as many as Linux permits (/proc/sys/net/rdma_ucm/max_backlog).
const DefaultBacklog = 1024

// Listener takes requests for connections to an address. It is safe for
// concurrent use.
type Listener struct {
	id   *ID
	addr netip.AddrPort
}

// Listen listens on an address: a wildcard for all devices, port 0 for one that
// is free. backlog is how many requests wait for Accept, 0 for DefaultBacklog;
// more are rejected. EADDRINUSE, or EADDRNOTAVAIL when a wildcard has the port
// or the address is not of this host; ENODEV when no RDMA device has the
// address.
func (c *Channel) Listen(local netip.AddrPort, n int, o Options) (*Listener, error) {
	id, err := c.NewID()
	if err != nil {
		return nil, err
	}
	if n <= 0 {
		n = DefaultBacklog
	}
	id.backlog = n
	l := &Listener{id: id, addr: local}
	if err = id.apply(&o); err == nil {
		err = id.Bind(local)
	}
	var r Route
	if err == nil {
		r, err = id.Route()
	}
	if err == nil {
		l.addr = r.Local
		err = id.call("listen on", func() error {
			return c.command(abi.UCMCmdListen, &abi.UCMListen{ID: id.num, Backlog: uint32(n)})
		})
	}
	if err != nil {
		_ = id.Destroy()
		return nil, outer("listen on", local.String(), err)
	}
	return l, nil
}

// Addr is the address that is listened on, with the port that was chosen.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Accept gives the next request. It returns ctx.Err() when ctx ends and
// net.ErrClosed after Close.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	id := l.id
	for {
		id.mu.Lock()
		if len(id.requests) > 0 {
			r := id.requests[0]
			id.requests = id.requests[1:]
			more := len(id.requests) > 0
			id.mu.Unlock()
			if more {
				id.notify()
			}
			return r, nil
		}
		why := id.over // the channel is closed or broken
		if id.closed {
			why = errListenerClosed
		}
		id.mu.Unlock()
		if why != nil {
			return nil, &Error{"accept on", l.addr.String(), why}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-id.wake:
		case <-id.done:
		}
	}
}

// put adds a request to a listener's, unless there is no room.
func (id *ID) put(r *Request) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.closed || len(id.requests) >= id.backlog {
		return false
	}
	id.requests = append(id.requests, r)
	id.notify()
	return true
}

// Close ends listening and rejects the requests that no Accept took.
// Connections that were accepted stay. A second Close does nothing.
func (l *Listener) Close() error {
	id := l.id
	id.mu.Lock()
	if id.closed {
		id.mu.Unlock()
		return nil
	}
	id.closed = true
	waiting := id.requests
	id.requests = nil
	id.mu.Unlock()
	err := id.Destroy()
	for _, r := range waiting {
		_ = r.Destroy()
	}
	return err
}

// request takes a new id, which the kernel made for a peer's request to a
// listener.
func (c *Channel) request(listener *ID, resp *abi.UCMEventResp) {
	id := newID(c)
	id.num = resp.ID
	r := &Request{ID: id, Peer: peer(resp)}
	if listener != nil && listener.backlog > 0 {
		c.enter(id)
		if listener.put(r) {
			return
		}
		c.mu.Lock()
		delete(c.ids, id.uid)
		c.mu.Unlock()
	}
	// The listener has gone or has no room. The kernel, whose own backlog is
	// free again once the event was fetched, would keep the id for ever.
	_ = c.destroyID(id.num)
}

// Request is a peer's wish for a connection. It is answered by Accept or
// Reject, or destroyed, which rejects it. It is an ID: Route tells the
// addresses, Device the device whose queue pair is to be connected.
type Request struct {
	*ID
	Peer Peer // the peer's description of itself

	mu       sync.Mutex
	answered bool // guarded by mu
}

func (r *Request) claim() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return errAnswered
	}
	r.answered = true
	return nil
}

// Accept connects the queue pair to the peer and waits until the peer has said
// that it is connected too. ResponderResources and InitiatorDepth beyond Peer's
// offer are cut to it. ECONNABORTED when the peer has given up meanwhile. After
// an error the request can only be destroyed. A peer that has disconnected
// again meanwhile is no error: Next tells of it.
//
// The peer may send as soon as it is connected, which is before this is: post
// receives between Init and Accept.
func (r *Request) Accept(ctx context.Context, qp QP, p ConnParam) error {
	if err := ctx.Err(); err != nil {
		return &Error{"accept", r.name(), err}
	}
	if err := r.Reply(qp, p); err != nil {
		return err
	}
	return r.Established(ctx)
}

// Reply is the first half of Accept: it connects the queue pair, which may wait
// for the peer's device, and answers the peer.
func (r *Request) Reply(qp QP, p ConnParam) error {
	const op = "accept"
	if len(p.Private) > abi.UCMAcceptData {
		return &Error{op, r.name(), errPrivate}
	}
	if err := r.claim(); err != nil {
		return &Error{op, r.name(), err}
	}
	p.ResponderResources = min(p.ResponderResources, r.Peer.ResponderResources)
	p.InitiatorDepth = min(p.InitiatorDepth, r.Peer.InitiatorDepth)
	if err := r.prepare(qp, &p); err != nil {
		_ = r.ID.call(op, func() error { return r.ch.reject(r.num, abi.UCMRejConsumerDefined, nil) })
		return outer(op, r.name(), err)
	}
	err := r.ID.call(op, func() error {
		// From now on the id's events bear its own uid. Those before were not
		// kept by the kernel.
		req := abi.UCMAccept{UID: r.uid, ID: r.num, ConnParam: p.encode(qp)}
		return r.ch.command(abi.UCMCmdAccept, &req)
	})
	return gaveUp(err)
}

// Established is the second half of Accept: it waits for the peer's word.
func (r *Request) Established(ctx context.Context) error {
	ev, err := r.await(ctx, "accept", abi.UCMEventEstablished)
	if ev.Type == abi.UCMEventDisconnected {
		// A peer disconnects a connection that it has made: its RTU was lost,
		// or Linux took the DREQ first, as it may on two processors.
		r.again(ev)
		return nil
	}
	return err
}

// prepare makes the queue pair ready before the reply: the peer's first packet
// may be faster than its word.
func (r *Request) prepare(qp QP, p *ConnParam) error {
	attr, mask, err := r.QPAttr(abi.QPSRTR)
	if err != nil {
		return gaveUp(err)
	}
	if err := r.ensureInit(qp); err != nil {
		return err
	}
	// The kernel gives the peer's wish here; it will tell the peer what we
	// grant.
	attr.MaxDestRdAtomic = p.ResponderResources
	p.setRTR(&attr)
	if err = qp.Modify(&attr, mask|abi.QPMaskState); err == nil {
		err = r.move(qp, abi.QPSRTS, func(a *verbs.QPAttr) { a.MaxRdAtomic = p.InitiatorDepth })
	}
	return err
}

// gaveUp explains the kernel's finding that a request is in the wrong state:
// the kernel drops the peer's later message, because no event can be given
// before Accept.
func gaveUp(err error) error { return wrongState(err, errGone) }

// wrongState explains the kernel's finding that an id is in the wrong state for
// a command: EINVAL of an error of this package.
func wrongState(err, why error) error {
	var e *Error
	if errors.Is(err, syscall.EINVAL) && errors.As(err, &e) {
		return &Error{e.Op, e.Object, fmt.Errorf("%w (%w)", why, e.Err)}
	}
	return err
}

// Reject refuses the request and destroys it. why is abi.UCMRejConsumerDefined
// (which 0 means) or abi.UCMRejVendorOptionNotSupported: Linux sends no other
// (EINVAL). private is up to abi.UCMRejectData bytes.
func (r *Request) Reject(why abi.UCMRejReason, private []byte) error {
	const op = "reject"
	switch {
	case len(private) > abi.UCMRejectData:
		return &Error{op, r.name(), errPrivate}
	case why != 0 && why != abi.UCMRejConsumerDefined && why != abi.UCMRejVendorOptionNotSupported:
		return &Error{op, r.name(), errReason}
	}
	if err := r.claim(); err != nil {
		return &Error{op, r.name(), err}
	}
	err := r.ID.call(op, func() error { return r.ch.reject(r.num, why, private) })
	if e := r.Destroy(); err == nil {
		err = e
	}
	return err
}
