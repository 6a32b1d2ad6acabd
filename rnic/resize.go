package rnic

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// Resize implements driver.CQ (rxe_verbs.c:rxe_resize_cq,
// rxe_queue.c:rxe_queue_resize). Entries that wait in the ring move to the new
// one; the old one then looks empty.
func (c *CQ) Resize(cqe int, u *driver.Udata) error {
	if len(u.Out) < abi.RXEResizeCQRespSize {
		return shortAnswer("RESIZE_CQ", len(u.Out), abi.RXEResizeCQRespSize)
	}
	next, err := ring.NewIn(u.Memory, ring.CQElemSize, cqe)
	if err != nil {
		return fmt.Errorf("rnic: completion queue of %d entries: %w: %w", cqe, err, syscall.ENOMEM)
	}
	resp := abi.RXEResizeCQResp{MI: publish(u, next)}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if err := c.d.check(); err != nil {
		return err
	}
	waiting, err := c.prod.Waiting()
	if err == nil && waiting > cqe {
		return fmt.Errorf("rnic: completion queue of %d entries: %d wait to be polled: %w", cqe, waiting, syscall.EINVAL)
	}
	prod, err := c.prod.MoveTo(next)
	if err != nil {
		return errors.Join(fmt.Errorf("rnic: completion queue's ring: %w", err), syscall.EINVAL)
	}
	c.ring, c.prod = next, prod
	resp.Put(u.Out)
	return nil
}
