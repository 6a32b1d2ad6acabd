package nvme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/uapi"
)

// HostConfig says how a host connects. The zero value of a field is its
// default.
type HostConfig struct {
	Subsystem string        // the target's name (DefaultSubsystem)
	Name      string        // the host's (NQN)
	Queues    int           // without the admin queue (1); a target may grant fewer
	Depth     int           // commands outstanding on each (32)
	KeepAlive time.Duration // by which the target notices our death (5 s)
}

// Host is connected to a controller of a target.
type Host struct {
	Controller wire.Controller
	Namespaces map[uint32]*Namespace

	config HostConfig
	queues []*hostQueue // the first is the admin queue
	next   atomic.Uint32
	alive  sync.WaitGroup // keepAlive
}

// StatusError is a command that the target refused.
type StatusError struct {
	Command string
	Status  wire.Status
	Result  uint64
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the target says %v (status %#x, result %#x)", e.Command, e.Status, uint16(e.Status), e.Result)
}

// Connect connects to the target at addr, HOST:PORT, by a device of this
// process: the admin queue first, then those for reading and writing. ctx
// bounds the connecting. Errors are those of uapi's Dial, *StatusError, and
// EPROTO for a target that cannot serve.
func Connect(ctx context.Context, d *uapi.Device, addr string, config HostConfig) (h *Host, err error) {
	config.Subsystem = cmp.Or(config.Subsystem, DefaultSubsystem)
	config.Name = cmp.Or(config.Name, "nqn.2026-11.rdmashim:host")
	config.Queues, config.Depth = cmp.Or(config.Queues, 1), cmp.Or(config.Depth, 32)
	config.KeepAlive = cmp.Or(config.KeepAlive, 5*time.Second)
	h = &Host{Namespaces: map[uint32]*Namespace{}, config: config}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
			h = nil
		}
	}()
	if err = h.add(ctx, d, addr, 32); err == nil {
		err = h.enable(ctx)
	}
	if err != nil {
		return h, err
	}
	admin := h.queues[0]
	h.alive.Go(func() { admin.keepAlive(config.KeepAlive) })
	n := uint32(config.Queues - 1)
	granted, err := h.admin(ctx, &wire.Command{Opcode: wire.AdminSetFeatures, Words: [6]uint32{wire.FeatureQueues, n | n<<16}}, nil)
	for i := 0; err == nil && i < min(config.Queues, int(granted&0xffff)+1); i++ {
		err = h.add(ctx, d, addr, config.Depth)
	}
	return h, err
}

// add connects one more queue.
func (h *Host) add(ctx context.Context, d *uapi.Device, addr string, depth int) error {
	q, err := openQueue(ctx, d, addr, len(h.queues), depth, h.Controller.InCapsule)
	if err != nil {
		return fmt.Errorf("queue %d: %w", len(h.queues), err)
	}
	h.queues = append(h.queues, q)
	go q.run()
	data := wire.ConnectData{Controller: wire.AnyController, Subsystem: h.config.Subsystem, Host: h.config.Name}
	copy(data.HostID[:], "rdmashim")
	keep := uint32(h.config.KeepAlive.Milliseconds())
	if q.id > 0 {
		data.Controller, keep = h.Controller.ID, 0
	}
	c := &wire.Command{Opcode: wire.OpFabrics, Fabrics: wire.FabricsConnect, Words: [6]uint32{uint32(q.id) << 16, uint32(depth - 1), keep}}
	result, err := q.do(ctx, c, toTarget, data.Append(nil))
	if q.id == 0 {
		h.Controller.ID = uint16(result)
	}
	return err
}

// admin carries out a command on the admin queue, which fills page.
func (h *Host) admin(ctx context.Context, c *wire.Command, page []byte) (uint64, error) {
	return h.queues[0].do(ctx, c, fromTarget, page)
}

// property reads a register of 4 bytes, or sets it.
func (h *Host) property(ctx context.Context, t wire.FabricsType, p wire.Property, value uint32) (uint64, error) {
	return h.admin(ctx, &wire.Command{Opcode: wire.OpFabrics, Fabrics: t, Words: [6]uint32{0, uint32(p), value}}, nil)
}

// enable turns the controller on and reads what it has.
func (h *Host) enable(ctx context.Context) error {
	const on = 4<<20 | 6<<16 | 1 // completions of 2^4 bytes, commands of 2^6
	if _, err := h.property(ctx, wire.FabricsSet, wire.PropertyCC, on); err != nil {
		return err
	}
	for status := uint64(0); status&1 == 0; {
		var err error
		if status, err = h.property(ctx, wire.FabricsGet, wire.PropertyCSTS, 0); err != nil {
			return err
		}
	}
	page := make([]byte, wire.IdentifySize)
	identify := func(which, nsid uint32) error {
		_, err := h.admin(ctx, &wire.Command{Opcode: wire.AdminIdentify, Namespace: nsid, Words: [6]uint32{which}}, page)
		return err
	}
	if err := identify(wire.IdentifyController, 0); err != nil {
		return err
	}
	id := h.Controller.ID
	h.Controller, _ = wire.ParseController(page)
	if h.Controller.ID != id || !h.Controller.Keyed {
		return fmt.Errorf("controller %d says that it is %d, with keyed SGLs: %t: %w", id, h.Controller.ID, h.Controller.Keyed, syscall.EPROTO)
	}
	if err := identify(wire.IdentifyList, 0); err != nil {
		return err
	}
	for _, nsid := range wire.ParseList(page) {
		if err := identify(wire.IdentifyNamespace, nsid); err != nil {
			return err
		}
		ns, _ := wire.ParseNamespace(page)
		if ns.Shift < 9 || ns.Shift > 12 || ns.Blocks > 1<<50 {
			return fmt.Errorf("namespace %d has %d blocks of 2^%d bytes: %w", nsid, ns.Blocks, ns.Shift, syscall.EPROTO)
		}
		h.Namespaces[nsid] = &Namespace{ns, h, nsid}
	}
	return nil
}

// keepAlive tells the target that the host lives, twice in the time agreed.
func (q *hostQueue) keepAlive(agreed time.Duration) {
	tick := time.NewTicker(max(agreed/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-q.ended:
			return
		case <-tick.C:
			_, _ = q.do(context.Background(), &wire.Command{Opcode: wire.AdminKeepAlive}, toTarget, nil) // commands under way fail, too
		}
	}
}

// Close disconnects. The methods of the namespaces must have returned.
func (h *Host) Close() error {
	var errs []error
	for _, q := range slices.Backward(h.queues) {
		errs = append(errs, q.RDMA.Disconnect(q.QP))
		<-q.ended
	}
	h.alive.Wait()
	for _, q := range h.queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}
