package nvme

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/nvme/wire"
)

// fabrics carries out the commands by which a host connects a queue and turns
// its controller on.
func (q *queue) fabrics(s int, c *wire.Command) {
	switch {
	case c.Fabrics == wire.FabricsConnect:
		q.fetch(s, wire.ConnectSize, (*queue).connect)
	case q.controller == nil || q.id != 0:
		q.reply(s, wire.WrongOrder, 0)
	case c.Fabrics == wire.FabricsGet:
		v, known := q.property(c.Property())
		if !known {
			q.reply(s, wire.InvalidField, 0)
			return
		}
		q.reply(s, wire.Success, v)
	case c.Fabrics == wire.FabricsSet && c.Property() == wire.PropertyCC:
		q.target.mu.Lock()
		q.controller.config = uint32(c.Value())
		q.controller.shut = q.controller.config>>14&3 != 0
		q.target.mu.Unlock()
		q.reply(s, wire.Success, 0)
	case c.Fabrics == wire.FabricsSet:
		q.reply(s, wire.InvalidField, 0)
	default:
		q.reply(s, wire.InvalidOpcode, 0)
	}
}

// enabled says whether the host has turned its controller on.
func (q *queue) enabled() bool {
	q.target.mu.Lock()
	defer q.target.mu.Unlock()
	return q.controller.config&1 != 0
}

// property is the value of a register.
func (q *queue) property(p wire.Property) (v uint64, known bool) {
	q.target.mu.Lock()
	defer q.target.mu.Unlock()
	switch p {
	case wire.PropertyCAP: // the NVM command set, ready within 7.5 s, contiguous queues
		return 1<<37 | 15<<24 | 1<<16 | (maxDepth - 1), true
	case wire.PropertyVS:
		return wire.Version, true
	case wire.PropertyCC:
		return uint64(q.controller.config), true
	case wire.PropertyCSTS: // ready, and shut down
		if v = uint64(q.controller.config & 1); q.controller.shut {
			v |= 2 << 2
		}
		return v, true
	}
	return 0, false
}

// connect makes a controller, or joins a queue to one, as the data of a connect
// command says.
func (q *queue) connect(s int) {
	t, c := q.target, &q.slots[s].command
	d, _ := wire.ParseConnectData(q.slots[s].data)
	bad := func(at uint64) { q.reply(s, wire.InvalidParam, at) }
	switch {
	case q.controller != nil:
		q.reply(s, wire.WrongOrder, 0)
		return
	case c.Queue() != q.id:
		bad(wire.AtQueue)
		return
	case c.Depth() == 0 || int(c.Depth()) >= q.depth:
		bad(wire.AtDepth)
		return
	case d.Subsystem != t.Subsystem:
		bad(wire.AtSubsystem)
		return
	case d.Host == "":
		bad(wire.AtHost)
		return
	case (q.id == 0) != (d.Controller == wire.AnyController):
		bad(wire.AtController)
		return
	}
	t.mu.Lock()
	ctrl := t.controllers[d.Controller]
	if q.id == 0 {
		ctrl = t.newController(q, d, c.KeepAlive())
	}
	joins := ctrl != nil && ctrl.queues[q.id] == nil && q.id <= ctrl.granted && ctrl.host.Host == d.Host && ctrl.host.HostID == d.HostID
	if joins {
		ctrl.queues[q.id] = q
	}
	t.mu.Unlock()
	if !joins {
		bad(wire.AtController)
		return
	}
	q.controller, q.wrap, q.head = ctrl, int(c.Depth())+1, 1
	q.connected.Store(true)
	q.reply(s, wire.Success, uint64(ctrl.id))
}

// newController makes a controller with a number of its own. Preconditions: mu
// is held.
func (t *Target) newController(admin *queue, d wire.ConnectData, keepAlive uint32) *controller {
	for t.last++; t.last == 0 || t.last >= 0xfff0 || t.controllers[t.last] != nil; {
		t.last++ // seats are fewer than numbers
	}
	c := &controller{id: t.last, host: d, granted: maxQueues, queues: map[uint16]*queue{}}
	if keepAlive > 0 {
		c.alive = time.Duration(keepAlive)*time.Millisecond + time.Second
		c.expires = time.AfterFunc(c.alive, func() { admin.fail(errSilent) })
	}
	t.controllers[c.id] = c
	t.Log("controller %d: %s", c.id, d.Host)
	return c
}

// admin carries out a command about the controller. Each is a sign of life.
func (q *queue) admin(s int, c *wire.Command) {
	if q.controller.expires != nil {
		q.controller.expires.Reset(q.controller.alive)
	}
	switch page := q.slots[s].data[:wire.IdentifySize]; c.Opcode {
	case wire.AdminKeepAlive:
		q.reply(s, wire.Success, 0)
	case wire.AdminIdentify:
		q.answer(s, q.identify(page, c), len(page))
	case wire.AdminGetLog:
		q.answerLog(s, c)
	case wire.AdminSetFeatures, wire.AdminGetFeatures:
		switch c.Words[0] & 0xff {
		case wire.FeatureQueues:
			n := uint64(min(c.Words[1]&0xffff, maxQueues-1))
			q.reply(s, wire.Success, n|n<<16)
		case wire.FeatureEvents, wire.FeatureKeepAlive:
			q.reply(s, wire.Success, 0)
		default:
			q.reply(s, wire.InvalidField, 0)
		}
	case wire.AdminAbort:
		q.reply(s, wire.Success, 1) // not aborted
	case wire.AdminAsyncEvent: // there are none
		q.reply(s, wire.EventLimit, 0)
	default:
		q.reply(s, wire.InvalidOpcode, 0)
	}
}

// identify fills in the page that a command asks for.
func (q *queue) identify(page []byte, c *wire.Command) wire.Status {
	t := q.target
	ns := t.namespaces[c.Namespace]
	var about wire.Namespace
	if ns != nil {
		about = wire.Namespace{Blocks: uint64(ns.Size()) >> blockShift, Shift: blockShift, ID: ns.id}
	}
	clear(page)
	switch which := c.Words[0] & 0xff; {
	case which == wire.IdentifyController:
		ctrl := wire.Controller{
			Serial: "rdmashim", Model: "rdmashim sample nvme", Subsystem: t.Subsystem, ID: q.controller.id,
			MaxTransfer: maxTransfer, MaxCommands: maxDepth, Namespaces: uint32(len(t.Disks)), InCapsule: inCapsule, Keyed: true,
		}
		ctrl.Append(page[:0])
	case which == wire.IdentifyList:
		at := page[:0]
		for n := uint64(c.Namespace) + 1; n <= uint64(len(t.Disks)) && len(at) < len(page); n++ {
			at = binary.LittleEndian.AppendUint32(at, uint32(n))
		}
	case (which == wire.IdentifySetOfNS || which == wire.IdentifySetOfCtrl) && c.Words[1]>>24 == 0:
		// Nothing is said of the NVM command set.
	case which != wire.IdentifyNamespace && which != wire.IdentifyDescriptors:
		return wire.InvalidField
	case ns == nil:
		return wire.InvalidNS
	case which == wire.IdentifyNamespace:
		about.Append(page[:0])
	default:
		about.AppendDescriptors(page[:0])
	}
	return wire.Success
}

// answerLog sends a part of a log: nothing has gone wrong, and it is 27 °C.
func (q *queue) answerLog(s int, c *wire.Command) {
	page := q.slots[s].data[:wire.IdentifySize]
	clear(page)
	log := c.Words[0] & 0xff
	n := (uint64(c.Words[0]>>16) | uint64(c.Words[1]&0xffff)<<16 + 1) * 4
	switch {
	case !slices.Contains([]uint32{wire.LogErrors, wire.LogHealth, wire.LogFirmware}, log):
		q.reply(s, wire.InvalidLog, 0)
		return
	case n > uint64(len(page)) || c.Words[2] != 0 || c.Words[3] != 0: // an offset
		q.reply(s, wire.InvalidField, 0)
		return
	case log == wire.LogHealth:
		binary.LittleEndian.PutUint16(page[1:], 300) // K
		page[3], page[4] = 100, 10                   // % spare, and when to warn
	}
	q.answer(s, wire.Success, int(n))
}
