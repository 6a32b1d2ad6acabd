package nvme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// Port is the port that NVMe over RDMA is assigned.
const Port = 4420

// DefaultSubsystem is the name (NQN) of a target that has none.
const DefaultSubsystem = "nqn.2026-11.rdmashim:disk"

// The target's limits.
const (
	maxDepth    = 64      // commands outstanding on a queue
	maxQueues   = 16      // of a controller, without the admin queue
	inCapsule   = 8 << 10 // bytes of data behind a command
	maxTransfer = 5       // log2 of pages of 4 KiB
	dataSize    = 4096 << maxTransfer
	// waitConnect is how long a queue pair may be without its connect command.
	waitConnect = 10 * time.Second
)

// Target serves disks as the namespaces 1, 2, … of a subsystem to any number of
// hosts. The zero value of a field is its default.
type Target struct {
	Subsystem string // NQN (DefaultSubsystem)
	Disks     []Disk // at least one
	// Seats bound the queue pairs, of which a host has two or more (256, half
	// of them from one address).
	Seats peer.Seats
	// Log receives a line about each host that connects, leaves or fails.
	Log func(format string, args ...any)

	mu          sync.Mutex
	controllers map[uint16]*controller // guarded by mu
	last        uint16                 // controller; guarded by mu
}

// controller is what a host has of the target: an admin queue and others.
type controller struct {
	id      uint16
	host    wire.ConnectData
	alive   time.Duration // without a command it ends; 0: never
	expires *time.Timer   // nil: never
	heard   atomic.Bool   // a command came since expires was set

	config atomic.Uint32     // the property CC
	queues map[uint16]*queue // guarded by Target.mu
}

// Serve takes hosts from a listener until ctx ends, which is no error, or the
// listener is closed.
func (t *Target) Serve(ctx context.Context, l *uapi.Listener) error {
	if t.Seats.Most == 0 {
		t.Seats.Most = 256
	}
	if t.Log == nil {
		t.Log = func(string, ...any) {}
	}
	t.Subsystem = cmp.Or(t.Subsystem, DefaultSubsystem)
	t.controllers = map[uint16]*controller{}
	var queues sync.WaitGroup
	defer queues.Wait()
	for {
		r, err := l.Accept(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		queues.Go(func() {
			if err := t.serve(ctx, r); err != nil && ctx.Err() == nil {
				t.Log("%v: %v", r.RemoteAddr, err)
			}
		})
	}
}

// disk is a namespace, or nil.
func (t *Target) disk(nsid uint32) Disk {
	if nsid == 0 || uint64(nsid) > uint64(len(t.Disks)) {
		return nil
	}
	return t.Disks[nsid-1]
}

// refused is why a request for a queue pair is bad, or 0.
func refused(r wire.ConnRequest) wire.Refusal {
	switch {
	case r.Format != 0:
		return wire.RefusedFormat
	case r.Queue > maxQueues:
		return wire.RefusedQueue
	case r.HostSend == 0 || r.HostSend >= maxDepth:
		return wire.RefusedHostSend
	case r.HostRecv < r.HostSend:
		return wire.RefusedHostRecv
	}
	return 0
}

// serve answers a request for a queue pair, and serves that to its end.
func (t *Target) serve(ctx context.Context, r *uapi.Request) (err error) {
	ask, err := wire.ParseConnRequest(r.PrivateData)
	why := refused(ask)
	if err == nil && why == 0 && t.Seats.Left(r.RemoteAddr) != nil {
		why = wire.RefusedNoRoom
	}
	if err != nil || why != 0 {
		return errors.Join(fmt.Errorf("queue %d refused: %v", ask.Queue, why), err, r.Reject(0, why.Append(nil)))
	}
	q := &queue{target: t, id: ask.Queue, depth: int(ask.HostSend) + 1}
	defer func() {
		q.leave()
		err = errors.Join(err, q.Close())
	}()
	if err := q.open(r); err != nil {
		return errors.Join(err, r.Reject(0, wire.RefusedNoRoom.Append(nil)))
	}
	ctx, q.fail = context.WithCancelCause(ctx)
	defer q.fail(nil)
	q.late = time.AfterFunc(waitConnect, func() { q.fail(fmt.Errorf("no connect command within %v", waitConnect)) })
	defer q.late.Stop()
	// The host's first command may come before its confirmation.
	served := make(chan error, 1)
	go func() { served <- q.serve(ctx) }()
	_, unaccepted := r.Accept(ctx, wire.AppendConnReply(nil, uint16(q.depth)))
	if err = unaccepted; err == nil {
		err = t.Seats.Take(r.RemoteAddr)
	}
	if err == nil {
		defer t.Seats.Give(r.RemoteAddr)
	} else {
		q.fail(err)
	}
	err = <-served
	if unaccepted != nil {
		q.QP = 0 // it is destroyed
	}
	return err
}

// leave takes an ended queue out of its controller, which ends with its admin
// queue.
func (q *queue) leave() {
	t, c := q.target, q.controller
	if c == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(c.queues, q.id)
	if q.id != 0 {
		return
	}
	delete(t.controllers, c.id)
	if c.expires != nil {
		c.expires.Stop()
	}
	for _, other := range c.queues {
		other.fail(nil)
	}
	t.Log("controller %d: %s has left", c.id, c.host.Host)
}
