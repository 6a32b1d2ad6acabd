package nvme

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/uapi"
)

// queue is a queue pair of a host. Its goroutine takes the completions and
// carries the commands out, one after the other; their data moves meanwhile.
type queue struct {
	pair
	target *Target
	id     uint16
	depth  int                     // of the queue pair; commands that may come at a time
	fail   context.CancelCauseFunc // ends it, for a reason that serve returns
	late   *time.Timer             // fails it, unless it is connected by then

	// Of the goroutine.
	controller *controller // nil before the connect command

	wrap  int // the depth that the connect command said
	head  int // commands taken, modulo wrap
	slots []slot
	free  []int // slots that the device does not use
	owed  int   // receives to post when a slot becomes free
}

// slot is memory for one command, from its receive until its reply was sent:
// the capsule, and room for data that does not come in it.
type slot struct {
	command wire.Command
	behind  []byte // the data that came in the capsule
	data    []byte
	fetched func(s int) error // runs when the host's data is here
}

// open makes memory and queue pair, in a domain that no other host reaches, and
// posts a receive for each command. There are twice as many slots, as a command
// may come before the acknowledgement of the reply to an earlier one.
func (q *queue) open(r *uapi.Request) error {
	if err := q.Share(r.Device); err != nil {
		return err
	}
	mem, err := q.Alloc(2*q.depth*slotSize, uapi.AccessLocalWrite)
	if err != nil {
		return err
	}
	if q.QP, err = r.CreateQPWith(uapi.QPConfig{
		PD: q.PD, SendDepth: 4 * q.depth, RecvDepth: q.depth, Inline: wire.CompletionSize,
		Access: uapi.None, // the host's memory is read and written, ours never
	}); err != nil {
		return err
	}
	q.slots = make([]slot, 2*q.depth)
	for i := range q.slots {
		q.slots[i].data = mem.Buf[i*slotSize+slotData : (i+1)*slotSize]
		q.free = append(q.free, i)
	}
	for range q.depth {
		if err := q.post(q.next()); err != nil {
			return err
		}
	}
	return nil
}

// next is a receive into a free slot, for the host's next command.
// Preconditions: one is free.
func (q *queue) next() uapi.WR {
	s := q.free[len(q.free)-1]
	q.free = q.free[:len(q.free)-1]
	return q.receive(s, 0, wire.CommandSize+inCapsule)
}

// serve takes the completions until the queue pair or its life ends. A host
// that leaves is no error.
func (q *queue) serve(life context.Context) error {
	err := q.completions(life, q.take)
	if life.Err() != nil {
		err = context.Cause(life)
	}
	cause, _ := q.RDMA.Cause(q.QP)
	if errors.Is(err, context.Canceled) || errors.Is(cause, uapi.ErrPeerDisconnected) {
		return nil
	}
	return fmt.Errorf("queue %d: %w", q.id, err)
}

// take handles a completion.
func (q *queue) take(kind, s int, wc *uapi.WC) error {
	switch kind {
	case kindRecv:
		q.head = (q.head + 1) % max(q.wrap, 1)
		return q.begin(s, q.Memory[0].Buf[s*slotSize:][:wc.ByteLen])
	case kindFetch:
		return q.slots[s].fetched(s)
	case kindSend:
		q.free = append(q.free, s)
		if q.owed > 0 {
			q.owed--
			return q.post(q.next())
		}
	}
	return nil
}

// begin carries out the command of a capsule. Bytes that are no command end the
// connection; a bad command has a status.
func (q *queue) begin(s int, capsule []byte) (err error) {
	slot := &q.slots[s]
	if slot.command, err = wire.ParseCommand(capsule); err != nil {
		return err
	}
	slot.behind = capsule[wire.CommandSize:]
	c := &slot.command
	if q.controller != nil && !q.controller.heard.Load() {
		q.controller.heard.Store(true)
	}
	switch room := uint64(len(slot.behind)); {
	case c.PRP:
		return q.reply(s, wire.InvalidField, 0)
	case !c.Data.Keyed() && c.Data.Kind != wire.SGLInCapsule:
		return q.reply(s, wire.InvalidSGL, 0)
	case !c.Data.Keyed() && (c.Data.Addr > room || uint64(c.Data.Length) > room-c.Data.Addr):
		return q.reply(s, wire.InvalidOffset, 0)
	case c.Opcode == wire.OpFabrics:
		return q.fabrics(s, c)
	case q.controller == nil || q.controller.config.Load()&1 == 0:
		return q.reply(s, wire.WrongOrder, 0)
	case q.id == 0:
		return q.admin(s, c)
	}
	return q.io(s, c)
}

// io carries out a command on a namespace.
func (q *queue) io(s int, c *wire.Command) error {
	disk, data := q.target.disk(c.Namespace), q.slots[s].data
	if disk == nil {
		return q.reply(s, wire.InvalidNS, 0)
	}
	first, blocks, all := c.Block(), c.Blocks(), uint64(disk.Size())>>blockShift
	off, n := int64(first<<blockShift), int(blocks<<blockShift)
	switch {
	case c.Opcode == wire.OpFlush:
		return q.reply(s, statusOf(disk.Sync(), wire.WriteFault), 0)
	case c.Opcode != wire.OpRead && c.Opcode != wire.OpWrite:
		return q.reply(s, wire.InvalidOpcode, 0)
	case first > all || blocks > all-first:
		return q.reply(s, wire.BeyondEnd, 0)
	case n > dataSize:
		return q.reply(s, wire.InvalidField, 0)
	case c.Opcode == wire.OpWrite:
		return q.fetch(s, n, func(s int) error {
			_, err := disk.WriteAt(data[:n], off)
			return q.reply(s, statusOf(err, wire.WriteFault), 0)
		})
	}
	_, err := disk.ReadAt(data[:n], off)
	return q.answer(s, statusOf(err, wire.ReadError), n)
}

// statusOf is Success, or the status of a disk that failed.
func statusOf(err error, failed wire.Status) wire.Status {
	if err != nil {
		return failed
	}
	return wire.Success
}

// fetch brings n bytes of the host's into the slot's data, and goes on then.
func (q *queue) fetch(s, n int, then func(s int) error) error {
	slot := &q.slots[s]
	d := slot.command.Data
	switch {
	case int(d.Length) != n:
		return q.reply(s, wire.InvalidLength, 0)
	case !d.Keyed():
		copy(slot.data[:n], slot.behind[d.Addr:])
		return then(s)
	}
	slot.fetched = then
	return q.post(uapi.WR{
		ID: workID(kindFetch, s), Op: uapi.OpRead, Flags: uapi.Signaled,
		SGE: q.piece(s, slotData, n), RemoteAddr: d.Addr, RKey: d.Key,
	})
}

// answer sends the first n bytes of the slot's data, if all went well, and the
// completion behind them.
func (q *queue) answer(s int, status wire.Status, n int) error {
	d := q.slots[s].command.Data
	switch {
	case status != wire.Success:
		return q.reply(s, status, 0)
	case !d.Keyed():
		return q.reply(s, wire.InvalidSGL, 0)
	case int(d.Length) != n:
		return q.reply(s, wire.InvalidLength, 0)
	}
	return q.reply(s, wire.Success, 0, uapi.WR{
		ID: workID(kindSilent, s), Op: uapi.OpWrite,
		SGE: q.piece(s, slotData, n), RemoteAddr: d.Addr, RKey: d.Key,
	})
}

// reply posts, at once and in this order, a receive for the command that the
// host may send then, the data if there is some, and the completion, which
// revokes the host's key if it asked for that. The host does not retry what
// fails.
func (q *queue) reply(s int, status wire.Status, result uint64, data ...uapi.WR) error {
	c := &q.slots[s].command
	if status != wire.Success {
		status |= wire.DoNotRetry
	}
	var wrs []uapi.WR
	if len(q.free) > 0 {
		wrs = append(wrs, q.next())
	} else {
		q.owed++
	}
	completion := wire.Completion{Result: result, Head: uint16(q.head), ID: c.ID, Status: status}
	send := uapi.WR{ID: workID(kindSend, s), Op: uapi.OpSend, Flags: uapi.Signaled, Data: completion.Append(nil)}
	if c.Data.Kind == wire.SGLInvalidate && c.Data.Length > 0 && status == wire.Success {
		send.Op, send.RKey = uapi.OpSendInv, c.Data.Key
	}
	return q.post(append(append(wrs, data...), send)...)
}
