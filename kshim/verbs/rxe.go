package verbs

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ring"
)

// This file is what depends on the driver, rdma_rxe's: the kernel makes the
// queues and answers where to map them, work requests and completions are
// memory, and the doorbell is a POST_SEND without work requests. Queues are
// concrete types, because a call through an interface would move every caller's
// work request to the heap.

// maxMapping bounds the length of a queue that a kernel may claim.
const maxMapping = 1 << 30

// mapQueue maps and opens a queue. The kernel lets it be mapped once, so this
// follows the create command at once.
func mapQueue(f kshim.File, mi abi.MMInfo) (*ring.Queue, error) {
	if mi.Size == 0 || mi.Size > maxMapping {
		return nil, fmt.Errorf("kernel answers a queue of %d bytes: %w", mi.Size, syscall.EIO)
	}
	m, err := f.Mmap(mi.Offset, int(mi.Size))
	if err != nil {
		return nil, err
	}
	q, err := ring.Open(m)
	if err != nil {
		return nil, errors.Join(err, f.Munmap(m))
	}
	return q, nil
}

func (c *commander) createCQ(req *abi.CreateCQ) (uint32, *compQueue, error) {
	var drv abi.RXECreateCQResp
	var resp abi.CreateCQResp
	if err := c.invoke(abi.CmdCreateCQ, req, &resp, &drv); err != nil {
		return 0, nil, err
	}
	q, err := mapQueue(c.file, drv.MI)
	if err != nil {
		return 0, nil, errors.Join(err, c.destroyCQ(resp.CQHandle))
	}
	return resp.CQHandle, &compQueue{file: c.file, q: q, c: q.Consumer()}, nil
}

func (c *commander) resizeCQ(req *abi.ResizeCQ) (*compQueue, error) {
	var drv abi.RXEResizeCQResp
	if err := c.invoke(abi.CmdResizeCQ, req, &abi.ResizeCQResp{}, &drv); err != nil {
		return nil, err
	}
	q, err := mapQueue(c.file, drv.MI)
	if err != nil {
		return nil, &ringLost{err}
	}
	return &compQueue{file: c.file, q: q, c: q.Consumer()}, nil
}

func (c *commander) createAH(req *abi.CreateAH) (handle, num uint32, err error) {
	var drv abi.RXECreateAHResp
	var resp abi.CreateAHResp
	err = c.invoke(abi.CmdCreateAH, req, &resp, &drv)
	return resp.AHHandle, drv.AHNum, err
}

func (c *commander) createSRQ(req *abi.CreateSRQ) (resp abi.CreateSRQResp, _ *recvQueue, err error) {
	var drv abi.RXECreateSRQResp
	if err = c.invoke(abi.CmdCreateSRQ, req, &resp, &drv); err != nil {
		return resp, nil, err
	}
	q, err := mapQueue(c.file, drv.MI)
	if err != nil {
		destroy := &abi.DestroySRQ{SRQHandle: resp.SRQHandle}
		return resp, nil, errors.Join(err, c.invoke(abi.CmdDestroySRQ, destroy, &abi.DestroySRQResp{}, nil))
	}
	return resp, &recvQueue{file: c.file, q: q, p: q.Producer()}, nil
}

func (c *commander) createQP(req *abi.CreateQP) (resp abi.CreateQPResp, _ *sendQueue, _ *recvQueue, err error) {
	var drv abi.RXECreateQPResp
	if err = c.invoke(abi.CmdCreateQP, req, &resp, &drv); err != nil {
		return resp, nil, nil, err
	}
	sq, err := mapQueue(c.file, drv.SQMI)
	if err != nil {
		return resp, nil, nil, errors.Join(err, c.destroyQP(resp.QPHandle))
	}
	send := &sendQueue{file: c.file, q: sq, p: sq.Producer(), bell: newDoorbell(c, resp.QPHandle)}
	if req.IsSRQ != 0 {
		return resp, send, nil, nil
	}
	rq, err := mapQueue(c.file, drv.RQMI)
	if err != nil {
		err = errors.Join(err, c.destroyQP(resp.QPHandle))
		send.close()
		return resp, nil, nil, err
	}
	return resp, send, &recvQueue{file: c.file, q: rq, p: rq.Producer()}, nil
}

// compQueue takes completions out of a ring. CQ.mu guards it.
type compQueue struct {
	file  kshim.File
	q     *ring.Queue
	c     *ring.Consumer
	ready int // filled slots seen
	taken int // of them, taken but not yet given back
}

// next takes one completion; false when there is none. Slots go back with
// release.
func (q *compQueue) next(wc *WC) (bool, error) {
	if q.taken == q.ready {
		q.release()
		n, err := q.c.Ready()
		if n == 0 || err != nil {
			return false, err
		}
		q.ready = n
	}
	if err := ring.DecodeWC(q.c.Slot(q.taken), wc); err != nil {
		return false, err
	}
	q.taken++
	return true, nil
}

// peek decodes the i-th completion that was not taken, and leaves it; false
// when there are not so many.
func (q *compQueue) peek(i int, wc *WC) (bool, error) {
	n, err := q.c.Ready()
	if i += q.taken; i >= n || err != nil {
		return false, err
	}
	return true, ring.DecodeWC(q.c.Slot(i), wc)
}

func (q *compQueue) release() {
	if q.taken > 0 {
		q.c.Release(q.taken)
	}
	q.ready, q.taken = 0, 0
}

func (q *compQueue) close() { _ = q.file.Munmap(q.q.Mapping()) }

// sendQueue puts work requests into a ring. QP.sq.mu guards all but bell, which
// has its own lock.
type sendQueue struct {
	file kshim.File
	q    *ring.Queue
	p    *ring.Producer
	bell *doorbell

	spares bool          // the kernel has spared doorbells
	posted time.Duration // then: about the time of the last post, since start
}

var start = time.Now()

// spared reports whether the last n requests that were published, with messages
// of so many bytes together, need no doorbell.
func (s *sendQueue) spared(n, bytes int) bool {
	spared := s.p.Spared(n)
	if s.spares = s.spares || spared; !s.spares {
		return false // a kernel that never does costs no look at the clock
	}
	last := s.posted
	s.posted = time.Since(start)
	return spared && s.posted-last <= ring.StreamGap(bytes)
}

func (s *sendQueue) close() {
	s.bell.close()
	_ = s.file.Munmap(s.q.Mapping())
}

// recvQueue puts receives into a ring. QP.rq.mu guards it.
type recvQueue struct {
	file kshim.File
	q    *ring.Queue
	p    *ring.Producer
}

func (r *recvQueue) close() { _ = r.file.Munmap(r.q.Mapping()) }

// doorbell is the preformatted command that tells the kernel to look at the
// send queue.
type doorbell struct {
	cmd    *commander
	handle uint32

	mu      sync.Mutex // guards the memory, into which the kernel answers
	mem     []byte
	release func()
	closed  bool
	silent  bool // the queue pair is destroyed: its handle may be another's
}

const (
	bellCmdSize = abi.CmdHdrSize + abi.PostSendSize
	bellResp    = bellCmdSize // place of the response
	bellSize    = bellResp + 8
)

func newDoorbell(c *commander, qp uint32) *doorbell {
	d := &doorbell{cmd: c, handle: qp, mem: make([]byte, bellSize)}
	var addr uint64
	addr, d.release = c.file.Pin(d.mem)
	hdr := abi.CmdHdr{Command: abi.CmdPostSend, InWords: bellCmdSize / 4, OutWords: abi.PostSendRespSize / 4}
	hdr.Put(d.mem)
	req := abi.PostSend{Response: addr + bellResp, QPHandle: qp, WQESize: abi.SendWRSize}
	req.Put(d.mem[abi.CmdHdrSize:])
	return d
}

// ring calls by write(), which is cheapest; a thread whose credentials changed
// is refused that and goes by ioctl.
func (d *doorbell) ring() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.silent {
		return errDestroyed
	}
	_, err := d.cmd.file.Write(d.mem[:bellCmdSize])
	if errors.Is(err, syscall.EACCES) {
		req := abi.PostSend{QPHandle: d.handle, WQESize: abi.SendWRSize}
		return d.cmd.invoke(abi.CmdPostSend, &req, &abi.PostSendResp{}, nil)
	}
	return err
}

// notice is the command that arms a completion queue.
type notice [abi.CmdHdrSize + abi.ReqNotifyCQSize]byte

func newNotice(cq, solicitedOnly uint32) (n notice) {
	hdr := abi.CmdHdr{Command: abi.CmdReqNotifyCQ, InWords: uint16(len(n) / 4)}
	hdr.Put(n[:])
	req := abi.ReqNotifyCQ{CQHandle: cq, SolicitedOnly: solicitedOnly}
	req.Put(n[abi.CmdHdrSize:])
	return n
}

// give calls as doorbell.ring does.
func (n *notice) give(c *commander) error {
	_, err := c.file.Write(n[:])
	if errors.Is(err, syscall.EACCES) {
		var req abi.ReqNotifyCQ
		_ = req.Parse(n[abi.CmdHdrSize:])
		return c.invoke(abi.CmdReqNotifyCQ, &req, nil, nil)
	}
	return err
}

// end destroys the queue pair while no doorbell rings: to the kernel a queue
// pair whose doorbell is being rung is busy.
func (d *doorbell) end() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.cmd.destroyQP(d.handle)
	d.silent = err == nil
	return err
}

func (d *doorbell) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.closed = true
		d.release()
	}
}
