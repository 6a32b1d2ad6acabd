package nvme

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
)

// fabrics carries out the commands by which a host connects a queue and turns
// its controller on.
func (q *queue) fabrics(s int, c *wire.Command) error {
	switch {
	case c.Fabrics == wire.FabricsConnect:
		return q.fetch(s, wire.ConnectSize, q.connect)
	case q.controller == nil || q.id != 0:
		return q.reply(s, wire.WrongOrder, 0)
	case c.Fabrics == wire.FabricsGet:
		value, status := q.property(c.Property())
		return q.reply(s, status, value)
	case c.Fabrics == wire.FabricsSet && c.Property() == wire.PropertyCC:
		q.controller.config.Store(uint32(c.Value()))
		return q.reply(s, wire.Success, 0)
	case c.Fabrics == wire.FabricsSet:
		return q.reply(s, wire.InvalidField, 0)
	}
	return q.reply(s, wire.InvalidOpcode, 0)
}

// property is the value of a register.
func (q *queue) property(p wire.Property) (v uint64, status wire.Status) {
	config := uint64(q.controller.config.Load())
	switch p {
	case wire.PropertyCAP: // the NVM command set, ready within 7.5 s, contiguous queues
		v = 1<<37 | 15<<24 | 1<<16 | (maxDepth - 1)
	case wire.PropertyVS:
		v = wire.Version
	case wire.PropertyCC:
		v = config
	case wire.PropertyCSTS: // ready, and shut down
		if v = config & 1; config>>14&3 != 0 {
			v |= 2 << 2
		}
	default:
		status = wire.InvalidField
	}
	return v, status
}

// connect makes a controller, or joins a queue to one, as the data of a connect
// command says.
func (q *queue) connect(s int) error {
	t, c := q.target, &q.slots[s].command
	d, _ := wire.ParseConnectData(q.slots[s].data)
	t.mu.Lock()
	defer t.mu.Unlock()
	ctrl := t.controllers[d.Controller]
	var wrong uint64
	switch {
	case q.controller != nil:
		return q.reply(s, wire.WrongOrder, 0)
	case c.Queue() != q.id:
		wrong = wire.AtQueue
	case c.Depth() == 0 || int(c.Depth()) >= q.depth:
		wrong = wire.AtDepth
	case d.Subsystem != t.Subsystem:
		wrong = wire.AtSubsystem
	case d.Host == "":
		wrong = wire.AtHost
	case q.id == 0 && d.Controller == wire.AnyController:
		ctrl = t.newController(q, d, c.KeepAlive())
	case q.id == 0 || ctrl == nil || ctrl.queues[q.id] != nil || ctrl.host.Host != d.Host || ctrl.host.HostID != d.HostID:
		wrong = wire.AtController
	}
	if wrong != 0 {
		return q.reply(s, wire.InvalidParam, wrong)
	}
	ctrl.queues[q.id] = q
	q.controller, q.wrap, q.head = ctrl, int(c.Depth())+1, 1
	q.late.Stop()
	return q.reply(s, wire.Success, uint64(ctrl.id))
}

// newController makes a controller with a number of its own. Preconditions: mu
// is held.
func (t *Target) newController(admin *queue, d wire.ConnectData, keepAlive uint32) *controller {
	for t.last++; t.last == 0 || t.last >= 0xfff0 || t.controllers[t.last] != nil; {
		t.last++ // seats are fewer than numbers
	}
	c := &controller{id: t.last, host: d, queues: map[uint16]*queue{}}
	if keepAlive > 0 {
		c.alive = time.Duration(keepAlive)*time.Millisecond + time.Second
		c.expires = time.AfterFunc(c.alive, func() { t.expire(c, admin) })
	}
	t.controllers[c.id] = c
	t.Log("controller %d: %s", c.id, d.Host)
	return c
}

// expire ends a controller that heard no command in its time, on any queue.
func (t *Target) expire(c *controller, admin *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.controllers[c.id] != c:
	case c.heard.Swap(false):
		c.expires.Reset(c.alive)
	default:
		admin.fail(errors.New("the host's keep-alive time has passed"))
	}
}

// admin carries out a command about the controller.
func (q *queue) admin(s int, c *wire.Command) error {
	switch page := q.slots[s].data[:wire.IdentifySize]; c.Opcode {
	case wire.AdminKeepAlive:
		return q.reply(s, wire.Success, 0)
	case wire.AdminIdentify:
		return q.answer(s, q.identify(page, c), len(page))
	case wire.AdminSetFeatures:
		if c.Words[0]&0xff != wire.FeatureQueues {
			return q.reply(s, wire.InvalidField, 0)
		}
		n := uint64(min(c.Words[1]&0xffff, maxQueues-1))
		return q.reply(s, wire.Success, n|n<<16)
	}
	return q.reply(s, wire.InvalidOpcode, 0)
}

// identify fills in the page that a command asks for.
func (q *queue) identify(page []byte, c *wire.Command) wire.Status {
	t := q.target
	clear(page)
	switch c.Words[0] & 0xff {
	case wire.IdentifyController:
		ctrl := wire.Controller{
			Model: "rdmashim sample nvme", Subsystem: t.Subsystem, ID: q.controller.id,
			MaxTransfer: maxTransfer, MaxCommands: maxDepth, Namespaces: uint32(len(t.Disks)), InCapsule: inCapsule, Keyed: true,
		}
		ctrl.Append(page[:0])
	case wire.IdentifyList:
		at := page[:0]
		for n := uint64(c.Namespace) + 1; n <= uint64(len(t.Disks)) && len(at) < len(page); n++ {
			at = binary.LittleEndian.AppendUint32(at, uint32(n))
		}
	case wire.IdentifyNamespace:
		disk := t.disk(c.Namespace)
		if disk == nil {
			return wire.InvalidNS
		}
		// A target that is started again on the same disks has the same
		// identifiers, or hosts would take them for others.
		id := sha256.Sum256(fmt.Appendf(nil, "%s %d", t.Subsystem, c.Namespace))
		wire.Namespace{Blocks: uint64(disk.Size()) >> blockShift, Shift: blockShift, ID: [16]byte(id[:])}.Append(page[:0])
	default:
		return wire.InvalidField
	}
	return wire.Success
}
