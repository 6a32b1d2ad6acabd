package rdmacm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/verbs"
)

const (
	node        = "/dev/infiniband/rdma_cm"
	versionFile = "/sys/class/misc/rdma_cm/abi_version"
)

// Channel is an open rdma_cm file: the ids made on it, and the one goroutine
// that fetches their events, if the kernel does not hand them over. It is safe
// for concurrent use.
type Channel struct {
	kernel kshim.Kernel
	file   kshim.File
	wait   kshim.Waiter

	stop   context.CancelFunc // ends the reader
	ended  chan struct{}      // closed when it has ended
	reader *scratch

	// fetch is held from the fetch of an event until it is dispatched. A caller
	// that has destroyed an id takes it once to know that no event of the id is
	// on its way.
	fetch sync.Mutex

	ctl    sync.RWMutex // shared by commands, exclusive in Close
	closed bool         // guarded by ctl

	mu      sync.Mutex
	free    []*scratch     // guarded by mu
	nextUID uint64         // guarded by mu; 0 is no uid: the kernel drops the events of an id that has it
	ids     map[uint64]*ID // guarded by mu, by uid
	failed  error          // guarded by mu: why there are no more events
}

// Open opens the connection manager. Without one it is ENOENT, and the error
// says what to do.
func Open(k kshim.Kernel) (*Channel, error) {
	fail := func(err error) (*Channel, error) { return nil, &Error{"open", node, err} }
	if err := checkVersion(k); err != nil {
		return fail(err)
	}
	file, err := k.Open(node)
	if errors.Is(err, syscall.ENOENT) {
		return fail(fmt.Errorf("%w: load the kernel's module rdma_ucm", err))
	}
	if err != nil {
		return fail(err)
	}
	wait, ok := file.(kshim.Waiter)
	if !ok {
		file.Close()
		return fail(errWait)
	}
	c := &Channel{kernel: k, file: file, wait: wait, ended: make(chan struct{}), ids: map[uint64]*ID{}}
	c.reader = c.take()
	if p, ok := file.(kshim.Pusher); ok {
		p.Push(c.pushed)
	}
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	go c.read(ctx)
	return c, nil
}

// checkVersion compares the version of the interface, where the kernel shows
// it.
func checkVersion(k kshim.Kernel) error {
	text, err := verbs.ReadAttr(k, versionFile)
	if err != nil {
		return nil //nolint:nilerror // opening the device file says more
	}
	if v, err := strconv.Atoi(text); err != nil || v != abi.UCMABIVersion {
		return fmt.Errorf("%w: %q, not %d", errVersion, text, abi.UCMABIVersion)
	}
	return nil
}

// read fetches events until the channel is closed or fails.
func (c *Channel) read(ctx context.Context) {
	defer close(c.ended)
	for {
		err := c.fetchOne()
		if errors.Is(err, syscall.EAGAIN) {
			err = c.wait.WaitReadable(ctx)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			c.fail(errClosed)
			return
		default:
			c.fail(fmt.Errorf("no more events: %w", err))
			return
		}
	}
}

// fetchOne fetches an event and dispatches it. EAGAIN when there is none.
func (c *Channel) fetchOne() error {
	c.fetch.Lock()
	defer c.fetch.Unlock()
	var req abi.UCMGetEvent
	var ev abi.UCMEventResp
	err := c.write(c.reader, &request{abi.UCMCmdGetEvent, &req, &req.Response, &ev})
	if err == nil {
		c.dispatch(&ev, false)
	}
	return err
}

// pushed takes an event from a kernel in this process, which holds locks.
func (c *Channel) pushed(b []byte) {
	var ev abi.UCMEventResp
	if ev.Parse(b) == nil {
		c.dispatch(&ev, true)
	}
}

// dispatch gives an event to its id. Ids are found by uid: the kernel's number
// of an id, which may be 0, is another id's as soon as the first is destroyed.
// An event that was pushed is no request, and no command is given for it here.
func (c *Channel) dispatch(resp *abi.UCMEventResp, pushed bool) {
	c.mu.Lock()
	id := c.ids[resp.UID]
	c.mu.Unlock()
	if resp.Event == abi.UCMEventConnectRequest {
		c.request(id, resp)
		return
	}
	if id != nil {
		id.deliver(Event{Type: resp.Event, Status: resp.Status, Peer: peer(resp)}, pushed)
	}
}

// fail ends all waiting.
func (c *Channel) fail(why error) {
	c.mu.Lock()
	c.failed = why
	ids := make([]*ID, 0, len(c.ids))
	for _, id := range c.ids {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		id.end(why)
	}
}

// enter gives an id a uid under which its events are found.
func (c *Channel) enter(id *ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nextUID++
	id.uid = c.nextUID
	if c.failed != nil {
		id.end(c.failed)
		return
	}
	c.ids[id.uid] = id
}

func (c *Channel) leave(id *ID) {
	c.mu.Lock()
	delete(c.ids, id.uid)
	c.mu.Unlock()
	c.fetch.Lock()
	//lint:ignore SA2001 events that were fetched for it are dispatched now
	c.fetch.Unlock()
}

// Close closes the channel. The kernel destroys what ids are left, and ends
// their connections. Everything that waits wakes with net.ErrClosed. A second
// Close does nothing.
func (c *Channel) Close() error {
	c.ctl.Lock() // waits for the commands that are under way
	first := !c.closed
	c.closed = true
	c.ctl.Unlock()
	if !first {
		<-c.ended
		return nil
	}
	c.stop()
	err := c.file.Close()
	<-c.ended
	c.fail(errClosed)
	c.reader.release()
	for _, s := range c.free {
		s.release()
	}
	if err != nil {
		return &Error{"close", node, err}
	}
	return nil
}
