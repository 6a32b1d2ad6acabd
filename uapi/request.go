package uapi

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/rdmacm"
	"github.com/rdmashim/rdmashim/uapi/internal/admission"
	"github.com/rdmashim/rdmashim/uapi/internal/errs"
)

// Request is a peer's wish for a connection. Look at it, make its queue pair
// with CreateQPWith, post receives, and answer it with Accept or Reject: a
// request without an answer stays, and takes one of the places that
// ListenConfig.Pending gives.
type Request struct {
	// Device is the device that the request came to. The queue pair is made on
	// it, and the peer can reach its regions only.
	Device                *Device
	LocalAddr, RemoteAddr netip.AddrPort
	// PrivateData is the request's private data, padded with zeroes to 56
	// bytes: its length is not on the wire.
	PrivateData []byte

	req       *rdmacm.Request
	keepAlive time.Duration
	queue     *admission.Queue[*Request]
	place     *admission.Place[*Request]

	mu       sync.Mutex
	pair     managedPair // guarded by mu
	answered bool        // guarded by mu
}

func (r *Request) name() string { return "request from " + r.RemoteAddr.String() }

// CreateQPWith makes the queue pair that Accept connects, so that receives can
// be posted before the peer can send. Both depths 0 mean 64 each. A protection
// domain of the peer's own (QPConfig.PD) keeps it off other peers' memory.
// EINVAL the second time and after an answer.
func (r *Request) CreateQPWith(config QPConfig) (QP, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return -1, opError("CreateQPWith", r.name(), errAnswered)
	}
	if err := r.create(config); err != nil {
		return -1, opError("CreateQPWith", r.name(), err)
	}
	return r.pair.num, nil
}

var errSqueezed = fmt.Errorf("%w: it did not confirm, and other requests wait (ListenConfig.Pending)", ErrUnreachable)

var errAnswered = errs.Explain(syscall.EINVAL, "the request was answered before")

// create makes the queue pair. Preconditions: mu is held.
func (r *Request) create(config QPConfig) error {
	if r.pair.queuePair != nil {
		return errs.Explain(syscall.EINVAL, "the request has its queue pair, %s", qpName(r.pair.num))
	}
	q, err := r.Device.newManaged(config)
	if err != nil {
		return err
	}
	if err := r.req.Init(q); err != nil {
		_ = r.Device.destroyQP(q.num)
		return err
	}
	r.pair = q
	return nil
}

// Accept connects the queue pair, made by CreateQPWith or now with default
// settings, tells the peer, and waits until the peer has said that it is
// connected too, for as long as ctx lasts. private is at most MaxAcceptPrivate
// bytes, behind which the peer sees zeroes.
//
// Errors:
//   - ErrGaveUp: the peer does not wait any more
//   - ErrUnreachable: the peer does not confirm within DefaultConnectTimeout,
//     4 s on a soft device, or sooner when others wait for its place
//     (ListenConfig.Pending)
//   - ctx's own
//   - EINVAL: too much private data, or the request was answered before
//
// After an error but EINVAL the queue pair is destroyed, too, and the peer
// told. A peer that has connected and disconnected is no error: the bytes that
// it wrote are there, and Cause says that it has gone.
func (r *Request) Accept(ctx context.Context, private []byte) (QP, error) {
	qp, err := r.accept(ctx, private)
	return qp, opError("Accept", r.name(), err)
}

func (r *Request) accept(ctx context.Context, private []byte) (QP, error) {
	if len(private) > MaxAcceptPrivate {
		return -1, errs.Explain(syscall.EINVAL, "%d bytes of private data; an acceptance carries %d", len(private), MaxAcceptPrivate)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answered {
		return -1, errAnswered
	}
	inner, cancel := bounded(ctx, DefaultConnectTimeout)
	defer cancel()
	r.answered = true
	var err error
	defer func() { r.queue.Done(r.place, err == nil) }()
	if r.pair.queuePair == nil {
		err = r.create(QPConfig{})
	}
	if err == nil {
		err = inner.Err()
	}
	if err == nil {
		err = r.req.Reply(r.pair, r.pair.param(private))
	}
	if err == nil {
		var squeeze context.CancelCauseFunc
		inner, squeeze = context.WithCancelCause(inner)
		defer squeeze(nil)
		r.queue.Replied(r.place, squeeze)
		err = r.req.Established(inner)
	}
	if err != nil {
		r.drop()
		return -1, setupError(ctx, inner, err)
	}
	info := ConnInfo{LocalAddr: r.LocalAddr, RemoteAddr: r.RemoteAddr, PrivateData: r.PrivateData}
	r.pair.begin(r.req.ID, info, r.keepAlive)
	return r.pair.num, nil
}

// drop gives back the request's resources. Preconditions: mu is held.
func (r *Request) drop() {
	_ = r.req.Destroy()
	if q := r.pair; q.queuePair != nil {
		_ = r.Device.destroyQP(q.num)
	}
}

// Reject refuses the request; the peer's Dial fails with a *RejectError that
// carries reason and private data, at most MaxRejectPrivate bytes. 0 is
// RejectedByProgram; Linux sends no other reasons than the two that are named
// here (EINVAL). A queue pair that CreateQPWith made is destroyed.
func (r *Request) Reject(reason RejectReason, private []byte) error {
	if reason == 0 {
		reason = RejectedByProgram
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	switch {
	case r.answered:
		err = errAnswered
	case len(private) > MaxRejectPrivate:
		err = errs.Explain(syscall.EINVAL, "%d bytes of private data; a rejection carries %d", len(private), MaxRejectPrivate)
	case reason != RejectedByProgram && reason != RejectedUnsupportedOption:
		err = errs.Explain(syscall.EINVAL, "reason %v; the kernel sends %v and %v", reason, RejectedByProgram, RejectedUnsupportedOption)
	default:
		r.answered = true
		defer r.queue.Done(r.place, false)
		err = r.req.Reject(abi.UCMRejReason(reason), private)
		if q := r.pair; q.queuePair != nil {
			_ = r.Device.destroyQP(q.num)
		}
	}
	return opError("Reject", r.name(), err)
}
