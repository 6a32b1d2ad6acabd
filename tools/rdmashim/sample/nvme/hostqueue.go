package nvme

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/uapi"
)

// hostQueue is a queue pair to a target. A command takes a slot, whose memory a
// window opens to the target for that command only.
type hostQueue struct {
	pair
	id, inCapsule int
	region        uapi.Region // of all the memory, where there are no windows
	free          chan int
	ended         chan struct{} // closed when run has returned, for err
	err           error

	mu    sync.Mutex
	slots []hostSlot // guarded by mu, but for mw, memory and done
}

// hostSlot is a command's part of the memory: capsule, data, response.
type hostSlot struct {
	mw     uapi.MW // 0: the region is open
	memory []byte
	done   chan wire.Completion // has room for one

	awaited  bool   // the response has not come
	left     int    // completions and the response, until the slot is free
	bound    uint32 // the window's key; 0: it is not bound
	response wire.Completion
}

// Where the data of a command goes, as its target's access to it.
const (
	toTarget   = uapi.AccessRemoteRead
	fromTarget = uapi.AccessRemoteWrite
)

// openQueue connects a queue pair, with a receive for each response.
func openQueue(ctx context.Context, d *uapi.Device, addr string, id, depth, room int) (q *hostQueue, err error) {
	q = &hostQueue{id: id, inCapsule: min(room, inCapsule), free: make(chan int, depth), ended: make(chan struct{}), slots: make([]hostSlot, depth)}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.Close())
		}
	}()
	if err := q.Share(d); err != nil {
		return nil, err
	}
	access := uapi.AccessLocalWrite | uapi.AccessMWBind
	info, err := d.QueryDevice()
	if info.Kind == uapi.KindHost { // a window of rdma_rxe opens all of a region
		access = uapi.AccessLocalWrite | uapi.AccessRemoteRead | uapi.AccessRemoteWrite
	}
	if err != nil {
		return nil, err
	}
	mem, err := q.Alloc(depth*slotSize, access)
	if err != nil {
		return nil, err
	}
	mr, err := d.QueryMR(mem.MR)
	if err != nil {
		return nil, err
	}
	q.region = mr.Region()
	qp, err := d.Dial(ctx, addr, uapi.DialConfig{
		Private:  wire.ConnRequest{Queue: uint16(id), HostRecv: uint16(depth), HostSend: uint16(depth - 1)}.Append(nil),
		QPConfig: uapi.QPConfig{PD: q.PD, SendDepth: 3 * depth, RecvDepth: depth},
		Prepare: func(qp uapi.QP) error {
			for s := range depth {
				slot := &q.slots[s]
				*slot = hostSlot{memory: mem.Buf[s*slotSize : (s+1)*slotSize], done: make(chan wire.Completion, 1)}
				if access&uapi.AccessMWBind != 0 {
					if slot.mw, err = d.CreateMW(qp); err != nil {
						return err
					}
				}
				if _, err := d.Post(qp, []uapi.WR{q.response(s)}); err != nil {
					return err
				}
				q.free <- s
			}
			return nil
		},
	})
	var rejected *uapi.RejectError
	if errors.As(err, &rejected) && rejected.Reason == uapi.RejectedByProgram {
		if why, e := wire.ParseRefusal(rejected.PrivateData); e == nil {
			err = fmt.Errorf("%w: %v", err, why)
		}
	}
	if err == nil {
		q.QP = qp
	}
	return q, err
}

// response is a receive for one.
func (q *hostQueue) response(s int) uapi.WR { return q.receive(s, slotResponse, wire.CompletionSize) }

// do carries out a command and returns its result. The target reads data, or
// writes it: access says which.
func (q *hostQueue) do(ctx context.Context, c *wire.Command, access uapi.Access, data []byte) (uint64, error) {
	var s int
	select {
	case s = <-q.free:
	case <-q.ended:
		return 0, q.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := q.send(s, c, access, data); err != nil {
		return 0, fmt.Errorf("%s: %w", c.Name(q.id == 0), err)
	}
	slot := &q.slots[s]
	select {
	case r := <-slot.done:
		var err error
		if r.Status != wire.Success {
			err = &StatusError{c.Name(q.id == 0), r.Status, r.Result}
		} else if access == fromTarget {
			copy(data, slot.memory[slotData:])
		}
		q.free <- s
		return r.Result, err
	case <-q.ended:
		return 0, fmt.Errorf("%s: %w", c.Name(q.id == 0), q.err)
	case <-ctx.Done(): // nothing else frees the slot
		_ = q.RDMA.Disconnect(q.QP)
		return 0, fmt.Errorf("%s: %w", c.Name(q.id == 0), ctx.Err())
	}
}

// send posts a command. Data that fits goes in the capsule; other data stays
// where the target can read or write it by a key, which the same post makes.
func (q *hostQueue) send(s int, c *wire.Command, access uapi.Access, data []byte) error {
	slot := &q.slots[s]
	c.ID, c.Data = uint16(s), wire.SGL{Kind: wire.SGLKeyed}
	var wrs []uapi.WR
	capsule := wire.CommandSize
	slot.bound = 0
	switch {
	case len(data) == 0:
	case access == toTarget && len(data) <= q.inCapsule:
		c.Data = wire.SGL{Kind: wire.SGLInCapsule, Length: uint32(len(data))}
		capsule += copy(slot.memory[wire.CommandSize:], data)
	default:
		if access == toTarget {
			copy(slot.memory[slotData:], data)
		}
		c.Data = wire.SGL{Kind: wire.SGLKeyed, Addr: q.region.Addr + uint64(s*slotSize+slotData), Length: uint32(len(data)), Key: q.region.RKey}
		if slot.mw != 0 {
			sge := q.piece(s, slotData, len(data))
			open, err := q.RDMA.NextRegion(slot.mw, sge[0], access)
			if err != nil {
				return err
			}
			c.Data.Kind, c.Data.Key, slot.bound = wire.SGLInvalidate, open.RKey, open.RKey
			wrs = append(wrs, uapi.WR{Op: uapi.OpBindMW, MW: slot.mw, SGE: sge, Access: access})
		}
	}
	c.Append(slot.memory[:0])
	q.mu.Lock()
	slot.awaited, slot.left = true, 2 // the response, and that the capsule was sent
	q.mu.Unlock()
	return q.post(append(wrs, uapi.WR{ID: workID(kindSend, s), Op: uapi.OpSend, Flags: uapi.Signaled, SGE: q.piece(s, 0, capsule)})...)
}

// run takes the completions until the connection ends.
func (q *hostQueue) run() {
	err := q.completions(context.Background(), q.take)
	cause, _ := q.RDMA.Cause(q.QP)
	q.err = fmt.Errorf("queue %d has ended: %w", q.id, errors.Join(err, cause))
	close(q.ended)
}

// take handles a completion. A response whose key the target has not revoked
// has this side do it, before the memory is used again.
func (q *hostQueue) take(kind, s int, wc *uapi.WC) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if kind == kindRecv {
		r, err := wire.ParseCompletion(q.slots[s].memory[slotResponse:][:wc.ByteLen])
		if err != nil {
			return err
		}
		if err := q.post(q.response(s)); err != nil {
			return err
		}
		if s = int(r.ID); s >= len(q.slots) || !q.slots[s].awaited {
			return fmt.Errorf("the target answers command %d, which is not outstanding: %w", s, syscall.EPROTO)
		}
		slot := &q.slots[s]
		slot.awaited, slot.response = false, r
		if slot.bound != 0 && (wc.Flags&uapi.WCWithInv == 0 || wc.InvRKey != slot.bound) {
			slot.left++
			if err := q.post(uapi.WR{ID: workID(kindRevoke, s), Op: uapi.OpLocalInv, Flags: uapi.Signaled, MW: slot.mw}); err != nil {
				return err
			}
		}
	}
	slot := &q.slots[s]
	if slot.left--; slot.left == 0 {
		slot.done <- slot.response
	}
	return nil
}
