package dump

import (
	"fmt"
	"net/netip"

	rocewire "github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/tools/rdmashim/dump/dissect"
)

// nvmePort is the port by which connections of NVMe over RDMA are known.
const nvmePort = 4420

// maxNVMe bounds how many queues are remembered: a capture may have any number
// of requests.
const maxNVMe = 4096

// nvmeTracker names the capsules of NVMe over RDMA whose connection request is
// in the capture.
type nvmeTracker struct {
	asked map[nvmeAsk]*nvmeQueue
	ends  map[nvmeEnd]*nvmeQueue
}

// nvmeAsk is a host that asks for a queue, by the request's number.
type nvmeAsk struct {
	host netip.Addr
	id   rocewire.CommID
}

// nvmeEnd is a queue pair that capsules or answers come to.
type nvmeEnd struct {
	addr netip.Addr
	qpn  rocewire.QPN
}

// nvmeQueue is a queue, and the commands on it whose answer is to come.
type nvmeQueue struct {
	id       uint16
	host     nvmeEnd
	commands map[uint16]wire.Command
}

// nvmeCapsule is a command or an answer as 'dump --json' prints it.
type nvmeCapsule struct {
	Queue     uint16  `json:"queue"`
	Command   string  `json:"command"`
	ID        uint16  `json:"id"`
	Namespace *uint32 `json:"namespace,omitempty"`
	Block     *uint64 `json:"block,omitempty"`
	Blocks    *uint64 `json:"blocks,omitempty"`
	Property  string  `json:"property,omitempty"`
	Bytes     *uint32 `json:"bytes,omitempty"`
	Key       *uint32 `json:"key,omitempty"`
	Status    string  `json:"status,omitempty"`
	Code      *uint16 `json:"code,omitempty"`
	Result    *hex64  `json:"result,omitempty"`
}

func newNVMeTracker() *nvmeTracker {
	return &nvmeTracker{map[nvmeAsk]*nvmeQueue{}, map[nvmeEnd]*nvmeQueue{}}
}

// add takes the next packet, and returns the capsule that begins in it, or nil.
func (t *nvmeTracker) add(p *dissect.Packet) *nvmeCapsule {
	if p.Err != nil {
		return nil
	}
	if p.MAD != nil {
		t.learn(p)
		return nil
	}
	end := nvmeEnd{p.Dst.Addr(), p.Wire.DestQPN}
	q := t.ends[end]
	op := p.Wire.Opcode
	if q == nil || !op.IsSend() || !op.StartsMessage() {
		return nil
	}
	if end == q.host {
		return q.answer(p.Wire.Payload)
	}
	return q.command(p.Wire.Payload)
}

// learn takes the queue pairs of a connection out of its request and reply.
func (t *nvmeTracker) learn(p *dissect.Packet) {
	switch m := p.MAD.CM.(type) {
	case *rocewire.REQ:
		if port, ok := m.ServiceID.TCPPort(); !ok || port != nvmePort || len(t.asked) >= maxNVMe {
			return
		}
		if ask, err := wire.ParseConnRequest(p.MAD.Private); err == nil && ask.Format == 0 {
			t.asked[nvmeAsk{p.Src.Addr(), m.LocalCommID}] = &nvmeQueue{
				id: ask.Queue, host: nvmeEnd{p.Src.Addr(), m.LocalQPN}, commands: map[uint16]wire.Command{},
			}
		}
	case *rocewire.REP:
		ask := nvmeAsk{p.Dst.Addr(), m.RemoteCommID}
		if q := t.asked[ask]; q != nil && len(t.ends) < 2*maxNVMe {
			t.ends[q.host] = q
			t.ends[nvmeEnd{p.Src.Addr(), m.LocalQPN}] = q
		}
	}
}

// command is the capsule of a command.
func (q *nvmeQueue) command(b []byte) *nvmeCapsule {
	c, err := wire.ParseCommand(b)
	if err != nil {
		return nil
	}
	q.commands[c.ID] = c
	admin := q.id == 0
	l := &nvmeCapsule{Queue: q.id, Command: c.Name(admin), ID: c.ID}
	if c.Data.Length > 0 {
		l.Bytes = &c.Data.Length
		if c.Data.Keyed() {
			l.Key = &c.Data.Key
		}
	}
	switch {
	case c.Opcode == wire.OpFabrics && c.Fabrics != wire.FabricsConnect:
		l.Property = c.Property().String()
	case c.Opcode == wire.OpFabrics:
	case !admin && c.Opcode != wire.OpFlush:
		l.Block, l.Blocks = new(c.Block()), new(c.Blocks())
		l.Namespace = &c.Namespace
	default:
		l.Namespace = &c.Namespace
	}
	return l
}

// answer is the capsule of a completion. It has its command's name if that was
// seen.
func (q *nvmeQueue) answer(b []byte) *nvmeCapsule {
	c, err := wire.ParseCompletion(b)
	if err != nil {
		return nil
	}
	name := "?"
	if of, ok := q.commands[c.ID]; ok {
		name = of.Name(q.id == 0)
	}
	return &nvmeCapsule{Queue: q.id, Command: name, ID: c.ID, Status: c.Status.String(), Code: new(uint16(c.Status)), Result: new(hex64(c.Result))}
}

// appendText appends the capsule as a line of text has it.
func (l *nvmeCapsule) appendText(b []byte) []byte {
	b = fmt.Appendf(b, " nvme queue %d %s id %d", l.Queue, l.Command, l.ID)
	if l.Property != "" {
		b = fmt.Appendf(b, " %s", l.Property)
	}
	if l.Namespace != nil {
		b = fmt.Appendf(b, " namespace %d", *l.Namespace)
	}
	if l.Block != nil {
		b = fmt.Appendf(b, " block %d+%d", *l.Block, *l.Blocks)
	}
	switch {
	case l.Key != nil:
		b = fmt.Appendf(b, " data %d by key 0x%08x", *l.Bytes, *l.Key)
	case l.Bytes != nil:
		b = fmt.Appendf(b, " data %d in the capsule", *l.Bytes)
	}
	if l.Status != "" {
		b = fmt.Appendf(b, ": %s", l.Status)
		if *l.Result != 0 {
			b = fmt.Appendf(b, " (result 0x%x)", uint64(*l.Result))
		}
	}
	return b
}
