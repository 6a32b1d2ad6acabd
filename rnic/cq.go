package rnic

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// CQ is a completion queue.
type CQ struct {
	d  *Device
	ev driver.CQEvents

	judge driver.CQJudge // of its completions, or nil

	ring  *ring.Queue    // guarded by d.mu
	prod  *ring.Producer // guarded by d.mu
	armed arming         // guarded by d.mu
	users int            // guarded by d.mu: queue pairs, one counted twice if it uses the queue for both

	entries uint32 // guarded by d.mu: that were put
}

// arming is the kind of entry that raises the next event.
type arming uint8

const (
	unarmed arming = iota
	armedSolicited
	armedAny
)

// CreateCQ implements driver.Device.
func (d *Device) CreateCQ(cqe int, u *driver.Udata, ev driver.CQEvents) (driver.CQ, error) {
	if len(u.Out) < abi.RXECreateCQRespSize {
		return nil, shortAnswer("CREATE_CQ", len(u.Out), abi.RXECreateCQRespSize)
	}
	q, err := ring.NewIn(u.Memory, ring.CQElemSize, cqe)
	if err != nil {
		return nil, fmt.Errorf("rnic: completion queue of %d entries: %w: %w", cqe, err, syscall.ENOMEM)
	}
	if err := d.countCQ(); err != nil {
		return nil, err
	}
	resp := abi.RXECreateCQResp{MI: publish(u, q)}
	resp.Put(u.Out)
	judge, _ := ev.(driver.CQJudge)
	return &CQ{d: d, ring: q, ev: ev, judge: judge, prod: q.Producer()}, nil
}

// countCQ takes a place for a completion queue.
func (d *Device) countCQ() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check(); err != nil {
		return err
	}
	if d.cqs >= maxCQ {
		return fmt.Errorf("rnic: all %d completion queues of %s are in use: %w", maxCQ, d.name, syscall.ENOMEM)
	}
	d.cqs++
	return nil
}

// publish makes a ring available to the client. Preconditions: d.mu is not
// held.
func publish(u *driver.Udata, q *ring.Queue) abi.MMInfo {
	return abi.MMInfo{Offset: u.Mmap(q.Mapping()), Size: uint32(len(q.Mapping()))}
}

// shortAnswer is the error for a client that has no room for the rings: it does
// not know the driver.
func shortAnswer(op string, have, need int) error {
	return fmt.Errorf("rnic: %s: the response has room for %d bytes of driver data, %d are needed: %w", op, have, need, syscall.EINVAL)
}

// CQE implements driver.CQ.
func (c *CQ) CQE() int {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	return c.ring.Cap()
}

// Arm implements driver.CQ. A request for any entry stands although one for
// solicited entries follows (rxe_verbs.c:rxe_req_notify_cq).
func (c *CQ) Arm(solicitedOnly bool) error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if err := c.d.check(); err != nil {
		return err
	}
	c.d.drive.Arm()
	if !solicitedOnly {
		c.armed = armedAny
	} else if c.armed == unarmed {
		c.armed = armedSolicited
	}
	return nil
}

// Destroy implements driver.CQ.
func (c *CQ) Destroy() error {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	if c.users > 0 {
		return fmt.Errorf("rnic: completion queue is in use by queue pairs (%d): %w", c.users, syscall.EBUSY)
	}
	c.d.cqs--
	c.armed = unarmed
	return nil
}

// put adds an entry. When the ring is full, or its indices make no sense, the
// entry is lost and the client gets IB_EVENT_CQ_ERR, one for each entry, as
// with rxe; an entry that waits to be polled is never overwritten.
// Preconditions: d.mu is held.
func (c *CQ) put(wc *ring.WC, solicited bool) {
	if free, err := c.prod.Free(); err != nil || free == 0 || ring.EncodeWC(c.prod.Slot(0), wc) != nil {
		c.d.count.cqOverflow++
		c.ev.Error()
		return
	}
	c.prod.Publish(1)
	c.entries++
	event := c.armed == armedAny || c.armed == armedSolicited && solicited
	if event {
		c.armed = unarmed
		c.ev.Completion()
	}
	c.d.drive.Announce(event) // for a program that looks for the event, too
}

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
