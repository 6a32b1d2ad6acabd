package emu

import (
	"context"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// Event is a driver's event of a connection.
func (id *ucmID) Event(ev driver.CMEvent) {
	if id.typ == abi.QPTUD {
		id.answered(&ev)
		return
	}
	id.setAsking(false, 0)
	if ev.Event != abi.UCMEventConnectResponse {
		ev.Peer = driver.CMPeerParam{}
	}
	ev.Peer.RetryCount = 0 // a reply names none
	id.post(ev.Event, ev.Status, connParam(&ev.Peer, ev.Private))
}

// setAsking notes that a request is under way, and what it offers; its end is
// any event.
func (id *ucmID) setAsking(on bool, resources uint8) {
	defer id.lockFile().mu.Unlock()
	id.asking, id.offered = on, resources
}

func (id *ucmID) asks() (resources uint8, asking bool) {
	defer id.lockFile().mu.Unlock()
	return id.offered, id.asking
}

// post gives an event to the file that has the id, with a parameter or nil. The
// events of a request that
// was not accepted yet, which has no uid, are dropped: its ACCEPT will fail
// (ucma.c: ucma_event_handler).
func (id *ucmID) post(ev abi.UCMEvent, status int32, param abi.Struct) {
	f, waits := id.lockFile(), false
	if id.uid != 0 && !id.dead {
		resp := abi.UCMEventResp{UID: id.uid, ID: id.num, Event: ev, Status: status}
		if param != nil {
			param.Put(resp.Param[:])
		}
		waits = f.add(ucmEvent{of: id, resp: resp})
	}
	f.mu.Unlock()
	if waits {
		f.notify()
	}
}

func connParam(param *driver.CMPeerParam, private []byte) *abi.UCMConnParam {
	p := &abi.UCMConnParam{
		QPNum: param.QPN, ResponderResources: param.ResponderResources, InitiatorDepth: param.InitiatorDepth,
		RetryCount: param.RetryCount, RNRRetryCount: param.RNRRetryCount, FlowControl: flag(param.FlowControl), SRQ: flag(param.SRQ),
	}
	p.PrivateDataLen = uint8(copy(p.PrivateData[:], private[:min(len(private), 255)]))
	return p
}

func flag(on bool) uint8 {
	if on {
		return 1
	}
	return 0
}

// listenOn is a listener's part on one device.
type listenOn struct {
	id  *ucmID
	dev *device
	cm  driver.CMDevice
	ib  bool // for addresses of InfiniBand, which no request has on Ethernet
}

// Request makes an id of a peer's request. Its events have no uid, and so are
// not kept, until it is accepted. No lock of an id may be taken here: the
// driver has its own, and commands take those in the other order.
func (l *listenOn) Request(conn driver.CMConn, r *driver.CMRequest) (driver.CMEvents, error) {
	if l.ib { // cma.c: cma_match_private_data
		return nil, fail(syscall.EAFNOSUPPORT, "the listener is for other addresses than %v", r.Dst.Addr())
	}
	core := &l.id.ns.cm
	core.moving.Lock()
	defer core.moving.Unlock()
	f := l.id.file.Load()
	made := newUCMID(f, l.id.ps, l.id.typ)
	made.state, made.conn, made.src, made.dst, made.dev, made.cm = ucmConnect, conn, r.Dst, r.Src, l.dev, l.cm
	made.path, made.label = driver.CMPath{Local: r.Dst.Addr(), GIDIndex: r.GIDIndex}, r.FlowLabel
	if !core.add(made) {
		return nil, syscall.ECONNREFUSED
	}
	resp := abi.UCMEventResp{ID: made.num, Event: abi.UCMEventConnectRequest}
	if made.typ == abi.QPTUD {
		udParam(nil, 0, 0, r.Private).Put(resp.Param[:])
	} else {
		connParam(&r.Param, r.Private).Put(resp.Param[:])
	}
	f.mu.Lock()
	dead := l.id.dead
	if dead {
		made.dead = true
		delete(f.ids, made)
	} else {
		resp.UID = l.id.uid
		f.add(ucmEvent{of: l.id, made: made, resp: resp})
	}
	f.mu.Unlock()
	if dead {
		core.remove(made)
		return nil, syscall.ECONNREFUSED
	}
	f.notify()
	return made, nil
}

// add hands an event over, or puts it behind those that wait; then it returns
// true. Preconditions: mu is held.
func (f *ucmFile) add(ev ucmEvent) (waits bool) {
	if f.push != nil && ev.made == nil {
		ev.report()
		ev.resp.Put(f.pushed[:])
		f.push(f.pushed[:])
		return false
	}
	f.events = append(f.events, ev)
	f.ready.event()
	return true
}

// report counts an event that the program has got. Preconditions: the file's mu
// is held.
func (ev *ucmEvent) report() {
	ev.of.reported++
	if ev.group != nil {
		ev.group.reported++
	}
}

// Push implements kshim.Pusher.
func (f *ucmFile) Push(to func([]byte)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.push = to
	for _, ev := range f.take(func(ev *ucmEvent) bool { return ev.made == nil }) {
		f.add(ev)
	}
}

func (f *ucmFile) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// getEvent gives one event. The file is non-blocking: EAGAIN when there is
// none.
func (c *ucmCall) getEvent() error {
	var req abi.UCMGetEvent
	_ = req.Parse(c.in)
	f := c.f
	f.mu.Lock()
	if len(f.events) == 0 {
		f.mu.Unlock()
		return syscall.EAGAIN
	}
	ev := f.events[0]
	if err := c.answer(req.Response, &ev.resp, abi.UCMEventRespSize); err != nil {
		f.mu.Unlock()
		return err // the event stays
	}
	f.events[0] = ucmEvent{}
	f.events = f.events[1:]
	if len(f.events) == 0 {
		f.ready.none()
	}
	ev.report()
	more := len(f.events) > 0
	f.mu.Unlock()
	if more {
		f.notify()
	}
	if ev.made != nil {
		ev.made.taken()
	}
	return nil
}

// taken makes room among the requests that wait.
func (id *ucmID) taken() {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.conn != nil {
		id.conn.Taken()
	}
}

// WaitReadable waits for an event. See kshim.Waiter.
func (f *ucmFile) WaitReadable(ctx context.Context) error {
	for {
		f.mu.Lock()
		ready := len(f.events) > 0
		f.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-f.wake: // perhaps for an event that is gone
		case <-f.closed:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
