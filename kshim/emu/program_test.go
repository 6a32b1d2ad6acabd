package emu

import (
	"context"
	"encoding/binary"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/abi/abitest"
)

// FuzzProgram runs a program of system calls. Its input says which: commands by
// write and by ioctl, methods, any bytes; calls on files; which events the
// driver raises and which calls it refuses; the device's end, and the
// process's. Handles and descriptors come from those that exist, mostly, and
// arguments are valid ones of which some bytes are changed, so that most calls
// reach the object.
//
// After each call the handles that the client may use are as many as the driver
// has objects and the device has charged. At the end all is released.
func FuzzProgram(f *testing.F) {
	for i := range requests {
		f.Add([]byte{byte(i), 0, 0, byte(i), 1, 0, byte(i), 0xff, 0})
	}
	for i := range methods {
		f.Add([]byte{opMethod, byte(i), 0, 0, 0, 0, 0, 0, 0, 0})
	}
	for op := opExtra; op < 0x100; op++ {
		f.Add([]byte{0, 0, 0, byte(op), 1, 2, 3, 4, 5, 6, 7, 8})
		f.Add([]byte{byte(op), 0xff, 0, 0, 0, byte(op), 0x80})
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		p := newProgram(t, in)
		for steps := 0; len(p.in) > 0 && steps < 200; steps++ {
			p.step()
			p.check()
		}
	})
}

// The first byte of an instruction is its kind; a byte below opMethod is the
// number of a request.
const (
	opMethod = 0x80
	opExtra  = 0xc0
)

// program is a client whose calls come from an input.
type program struct {
	*client
	t  testing.TB
	in []byte

	handles [numKinds][]uint32 // that exist, of the file
	stale   uint32             // one that has existed
	files   []kshim.File       // other device files
	events  []kshim.File
	dead    bool // the device is gone, or the process
}

func newProgram(t testing.TB, in []byte) *program {
	p := &program{client: newClient(t, true), t: t, in: in}
	newObjects(p.client)
	channel, _ := p.channel()
	async, _ := p.asyncFile()
	p.events = append(p.events, channel, async)
	dev := p.m.devices[0]
	t.Cleanup(func() { // before the client's
		p.m.devices[0] = dev
		p.dev.Refuse = nil
		for _, f := range p.events {
			require.NoError(t, f.Close())
		}
		p.proc.Exit()
		for k := range numKinds {
			require.Zero(t, dev.counts[k].Load(), k)
		}
	})
	p.check()
	return p
}

// draw takes a byte of the input, 0 at its end.
func (p *program) draw() int {
	if len(p.in) == 0 {
		return 0
	}
	b := p.in[0]
	p.in = p.in[1:]
	return int(b)
}

// bytes takes n bytes of the input, or the rest.
func (p *program) bytes(n int) []byte {
	n = min(n, len(p.in))
	b := slices.Clone(p.in[:n])
	p.in = p.in[n:]
	return b
}

// handle is one of a kind that exists, or not.
func (p *program) handle(k kind, n int) uint32 {
	list := p.handles[k]
	switch {
	case n >= 0xfe:
		return p.stale
	case n >= 0xfc:
		k = (k + 1) % numKinds
		list = p.handles[k]
	}
	if len(list) == 0 {
		return p.stale
	}
	return list[n%len(list)]
}

// request is a command with its arguments.
type request struct {
	cmd  abi.Command
	out  int // bytes of the response
	make func(*program) []byte
}

// requests are all commands: the examples, with handles that are drawn.
var requests = func() (all []request) {
	for _, e := range slices.Concat(examples(abi.FormWrite), examples(abi.FormExtended)) {
		all = append(all, request{e.entry.Command, e.room(), func(p *program) []byte {
			o := &abitest.Objects{Group: testGroup, Buffer: p.addr, Path: ahRequest(0, 0).Attr, Channel: int32(p.descriptor())}
			for k, at := range [numKinds][2]*uint32{
				kindPD: {&o.PD, &o.FreePD}, kindMR: {&o.MR, &o.FreeMR}, kindCQ: {&o.CQ, &o.FreeCQ}, kindQP: {&o.QP, &o.FreeQP}, kindAH: {&o.AH, &o.FreeAH},
				kindSRQ: {&o.SRQ, &o.FreeSRQ}, kindMW: {&o.MW, &o.FreeMW},
			} {
				n := p.draw()
				*at[0], *at[1] = p.handle(kind(k), n), p.handle(kind(k), n)
			}
			o.UD = o.QP
			b := e.bytes(p.client, o)
			switch r := e.Request(o).(type) {
			case *abi.ModifyQP: // forward as a rule
				*r = *[]*abi.ModifyQP{initAttr(o.QP), rtrAttr(o.QP), rtsAttr(o.QP), {QPHandle: o.QP, AttrMask: abi.QPMaskState, QPState: abi.QPState(p.draw() % 8)}}[p.draw()%4]
				r.Put(b)
			case *abi.RegMR:
				r.Response, r.Length = p.addr, uint64(p.draw())<<4
				r.Put(b)
			}
			return b
		}})
	}
	return all
}()

// descriptor is that of an event file, or −1.
func (p *program) descriptor() int {
	if n := p.draw(); n%2 != 0 && len(p.events) > 0 {
		return p.events[n/2%len(p.events)].(interface{ FD() int }).FD()
	}
	return -1
}

// step does one instruction.
func (p *program) step() {
	switch op := p.draw(); {
	case op < opMethod:
		p.command(&requests[op%len(requests)])
	case op < opExtra:
		p.method(methods[p.draw()%len(methods)])
	default:
		p.extra(op)
	}
}

// command gives a command by write, or by ioctl, with some bytes changed.
func (p *program) command(r *request) {
	way, changes := p.draw(), p.draw()
	in := r.make(p)
	if changes >= 0xc0 {
		for range changes&7 + 1 {
			in[p.draw()%len(in)] = byte(p.draw())
		}
	}
	out := r.out
	if way >= 0xe0 {
		out = way & 31 * 4
	}
	row := abi.LookupCommand(r.cmd)
	var err error
	switch {
	case way&1 != 0:
		core := out
		if row.Driver {
			core = min(out, row.Response.Size)
		}
		err = p.ioctl(p.invocation(uint64(r.cmd), in, core, out-core))
	case row.Form == abi.FormExtended:
		b := make([]byte, abi.CmdHdrSize+abi.ExCmdHdrSize+len(in))
		core := min(out, row.Response.Size) &^ 7
		(&abi.CmdHdr{Command: r.cmd, InWords: uint16(len(in) / 8), OutWords: uint16(core / 8)}).Put(b)
		(&abi.ExCmdHdr{Response: p.addr, ProviderOutWords: uint16((out - core) / 8)}).Put(b[abi.CmdHdrSize:])
		copy(b[abi.CmdHdrSize+abi.ExCmdHdrSize:], in)
		_, err = p.f.Write(b)
	default:
		_, err = p.writeRaw(uint32(r.cmd), in, out)
	}
	if err == nil && r.cmd == abi.CmdCreateCompChannel {
		p.adopt(int32(le.Uint32(p.page)))
	}
	if err != nil {
		require.NotEmpty(p.t, err.Error())
	}
}

var methods = slices.DeleteFunc(abi.Schema(), func(e *abi.Entry) bool { return e.Form != abi.FormIoctl })

// method calls a method with attributes as its row wants them.
func (p *program) method(m *abi.Entry) {
	var list []abi.IoctlAttr
	for i := range m.Attrs {
		spec, n := &m.Attrs[i], p.draw()
		if !spec.Mandatory && (n&1 != 0 || spec.Type != abi.AttrOut && n&2 != 0) {
			continue
		}
		a := attr(spec.ID, spec.Min, [4]uint64{0, 1, 4, uint64(n)}[n>>6])
		where := uint64(i) * 128 % 2048
		switch spec.Type {
		case abi.AttrIn:
			if spec.Max == abi.AnyLength {
				a.Len = uint16(max(spec.Min, p.draw()%64))
			}
			if a.Len > abi.AttrInlineMax {
				b := p.page[pageIn+where/2:][:a.Len]
				clear(b)
				for at := 0; at+4 <= len(b); at += 4 {
					le.PutUint32(b[at:], uint32(p.draw())%16)
				}
				a.Data = p.addr + pageIn + where/2
			}
		case abi.AttrOut:
			a.Len = uint16(max(spec.Min, min(spec.Max, 64)))
			a.Data = p.addr + where
		case abi.AttrConst:
			a.Data = uint64(n % 16)
		case abi.AttrFlags:
			a.Data >>= 2
		case abi.AttrHandle, abi.AttrHandleDestroy:
			if k, known := kindOfObject[spec.Object]; known {
				a.Data = uint64(p.handle(k, n))
			}
		case abi.AttrFD:
			a.Data = uint64(p.descriptor())
		case abi.AttrHandleNew, abi.AttrFDNew:
			a.Data = 0
		}
		if n == 0xff {
			a.Len, a.Data = uint16(p.draw()), a.Data+uint64(p.draw())<<8
		}
		list = append(list, a)
	}
	arg := argument(m.Object, m.Method, list...)
	if err := p.ioctl(arg); err == nil && m.Method == abi.MethodAsyncEventAlloc && m.Object == abi.ObjectAsyncEvent {
		p.adopt(int32(le.Uint32(arg[abi.IoctlHdrSize+8:])))
	}
}

// adopt takes over a descriptor that a call gave.
func (p *program) adopt(fd int32) {
	if f, err := p.proc.Adopt(fd); err == nil {
		p.events = append(p.events, f)
	}
}

// extra makes a call that is no command.
func (p *program) extra(op int) {
	now, cancel := context.WithCancel(p.t.Context())
	cancel()
	d := p.dev
	if op&15 == 7 || op&15 >= 14 {
		d.Refuse = nil // an object whose end a driver refuses stays for ever
	}
	switch n := p.draw(); op & 15 {
	case 0: // a completion, and an error of a queue
		if d.LastCQ != nil && d.Live[d.LastCQ] != "" {
			d.LastCQ.Events.Completion()
			if n&1 != 0 {
				d.LastCQ.Events.Error()
			}
		}
	case 1:
		if d.Last != nil && d.Live[d.Last] != "" {
			d.Last.Events.Event(abi.EventType(n % 20))
		}
	case 2:
		if len(p.events) > 0 {
			_, _ = p.events[n%len(p.events)].Read(now, make([]byte, n/4))
		}
	case 3:
		if len(p.events) > 0 {
			i := n % len(p.events)
			require.NoError(p.t, p.events[i].Close())
			p.events = slices.Delete(p.events, i, i+1)
		}
	case 4: // the driver refuses, until told otherwise
		d.Refuse = []error{nil, syscall.ENOMEM, syscall.EBUSY, nil}[n&3]
	case 5: // the other file
		p.files = append(p.files, p.f)
		p.f, p.files = p.files[0], p.files[1:]
	case 6:
		if f, err := p.proc.Open("/dev/infiniband/uverbs0"); err == nil && len(p.files) < 3 {
			p.files = append(p.files, p.f)
			p.f = f
			_, _ = p.writeRaw(uint32(abi.CmdGetContext), binary.LittleEndian.AppendUint64(nil, p.addr), 8)
		} else if err == nil {
			require.NoError(p.t, f.Close())
		}
	case 7: // the last but one stays
		if len(p.files) > 0 {
			require.NoError(p.t, p.f.Close())
			p.f, p.files = p.files[0], p.files[1:]
		}
	case 8:
		length := []int{1024, 2048, 384 + 128*16, n}[n&3]
		if ring, err := p.f.Mmap(p.m.ringOffset.Load()-uint64(n>>2)<<12, length); err == nil && n&0x40 != 0 {
			require.NoError(p.t, p.f.Munmap(ring))
		}
	case 9, 10: // anything by write
		_, _ = p.f.Write(p.bytes(n))
	case 11, 12: // anything by ioctl
		_ = p.ioctl(p.bytes(n))
	case 13:
		_, _ = p.f.Read(now, make([]byte, n))
	case 14:
		if n >= 0xe0 {
			p.dead = p.m.Unregister(d.Name()) == nil || p.dead
		}
	case 15:
		if n >= 0xe0 {
			p.dead = p.m.Kill(p.proc) == nil || p.dead
		}
	}
}

// check compares the books of client, core and driver.
func (p *program) check() {
	if p.dead {
		return
	}
	var live, known [numKinds]int
	for _, name := range p.dev.Live {
		live[slices.Index(kindNames[:], name)]++
	}
	for i, f := range append(p.files, p.f) {
		for k := range numKinds {
			var list []uint32
			for _, o := range f.(*uverbsFile).handles.all(k) {
				list = append(list, o.handle)
			}
			known[k] += len(list)
			if i == len(p.files) {
				if len(p.handles[k]) > 0 && !slices.Contains(list, p.handles[k][0]) {
					p.stale = p.handles[k][0]
				}
				p.handles[k] = list
			}
		}
	}
	for k := range numKinds {
		require.Equal(p.t, live[k], known[k], "%v: the driver has %d, the client %d", k, live[k], known[k])
		require.EqualValues(p.t, live[k], p.m.devices[0].counts[k].Load(), "%v charged", k)
	}
}
