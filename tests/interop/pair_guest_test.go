//go:build guest && linux

package interop

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// margin lies around what a message may touch, and must stay as it was.
const margin = 256

// untouched is the byte of memory that no message wrote.
const untouched = 0x5a

// end is one side of a connection: a queue pair, and memory of which one half
// is where messages come from and the other where they go.
type end struct {
	name   string
	device *uapi.Device
	qp     uapi.QP
	mr     uapi.MR
	region uapi.Region
	mem    []byte
	v4     bool // connected over IPv4
	half   int  // offset of the half that messages go to
}

func (e *end) source() []byte { return e.mem[:e.half] }
func (e *end) target() []byte { return e.mem[e.half:] }

// device is an open device with memory, for any number of pairs one after the
// other.
type device struct {
	name   string
	device *uapi.Device
	mem    []byte
	mr     uapi.MR
	region uapi.Region
}

const allAccess = uapi.AccessLocalWrite | uapi.AccessRemoteWrite | uapi.AccessRemoteRead | uapi.AccessRemoteAtomic

// newDevice registers memory for messages of up to max bytes.
func newDevice(t *testing.T, name string, d *uapi.Device, max int) *device {
	mem := must.Get(uapi.Alloc(2 * (max + 2*margin)))(t)
	t.Cleanup(func() { require.NoError(t, uapi.Free(mem)) })
	mr, region, err := d.RegRegion(mem, uapi.MRConfig{Access: allAccess})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DeregMR(mr)) })
	return &device{name, d, mem, mr, region}
}

// devices opens a soft device, and rxe with its address of a family.
func devices(t *testing.T, name string, f family, max int) (soft, rxe *device) {
	return newDevice(t, "soft", openSoft(t, name), max), newDevice(t, "rxe", openRXE(t, f), max)
}

// newEnd makes a queue pair that is not connected.
func (d *device) newEnd(t *testing.T, config uapi.QPConfig) *end {
	config.SendDepth, config.SendSGE = cmp.Or(config.SendDepth, 64), cmp.Or(config.SendSGE, 4)
	if config.SRQ == 0 {
		config.RecvDepth, config.RecvSGE = cmp.Or(config.RecvDepth, 64), cmp.Or(config.RecvSGE, 4)
	}
	config.Timeout = cmp.Or(config.Timeout, time.Second) // emulated processors stall
	qp := must.Get(d.device.CreateQPWith(config))(t)
	t.Cleanup(func() { require.NoError(t, d.device.DestroyQP(qp)) })
	return &end{name: d.name, device: d.device, qp: qp, mr: d.mr, region: d.region, mem: d.mem, half: len(d.mem) / 2}
}

// connect connects two ends, the first one first.
func connect(t *testing.T, a, b *end) {
	ea, eb := a.endpoint(t), b.endpoint(t)
	require.NoError(t, a.device.ConnectQP(a.qp, eb))
	require.NoError(t, b.device.ConnectQP(b.qp, ea))
}

// newPair makes a connected pair.
func newPair(t *testing.T, a, b *device, config uapi.QPConfig) (*end, *end) {
	x, y := a.newEnd(t, config), b.newEnd(t, config)
	connect(t, x, y)
	info := must.Get(x.device.QueryQP(x.qp))(t)
	x.v4 = info.Remote.Addr.Addr().Is4()
	y.v4 = x.v4
	return x, y
}

// next waits for one completion.
func (e *end) next(t *testing.T) uapi.WC {
	var wc [1]uapi.WC
	n, err := e.device.WaitCQ(wait(t), e.qp, wc[:])
	require.NoError(t, err, "%s waits for a completion", e.name)
	require.Equal(t, 1, n)
	return wc[0]
}

// ends waits for one completion, which must be one with a status. The
// counters are read where it is not: rxe's take milliseconds each.
func (e *end) ends(t *testing.T, status uapi.Status) uapi.WC {
	wc := e.next(t)
	if wc.Status != status {
		require.FailNow(t, "wrong status", "%s, which must complete with %v: %v\n%s", e.name, status, wc, e.counters())
	}
	return wc
}

// success waits for one completion, which must be a success.
func (e *end) success(t *testing.T, what uapi.Opcode) uapi.WC {
	wc := e.ends(t, uapi.WCSuccess)
	require.Equal(t, what, wc.Opcode, "%s: %v", e.name, wc)
	require.Equal(t, e.qp, wc.QP)
	return wc
}

// counters lists those of rxe and of the end's device that are not 0.
func (e *end) counters() string {
	var b strings.Builder
	if c, err := e.device.Counters(); err == nil {
		fmt.Fprintf(&b, "%s:", e.name)
		for _, name := range slices.Sorted(maps.Keys(c)) {
			if c[name] != 0 {
				fmt.Fprintf(&b, " %s=%d", name, c[name])
			}
		}
	}
	b.WriteString("\nrxe0:")
	files, _ := filepath.Glob("/sys/class/infiniband/rxe0/ports/1/hw_counters/*")
	for _, f := range files {
		if v := hwCounter(filepath.Base(f)); v != 0 {
			fmt.Fprintf(&b, " %s=%d", filepath.Base(f), v)
		}
	}
	return b.String()
}

// post posts one request.
func (e *end) post(t *testing.T, wr uapi.WR) {
	n, err := e.device.Post(e.qp, []uapi.WR{wr})
	require.NoError(t, err, "%s posts %v", e.name, wr.Op)
	require.Equal(t, 1, n)
}

// noise is incompressible, and never equal at two offsets.
var noise = func() []byte {
	b := make([]byte, maxMessage+1<<16)
	var seed [32]byte
	copy(seed[:], "soft and rxe")
	rand.NewChaCha8(seed).Read(b)
	return b
}()

var noiseAt int

// pattern gives n bytes that differ from call to call.
func pattern(n int) []byte {
	noiseAt = (noiseAt + 4099) % (1 << 16)
	return noise[noiseAt:][:n]
}

// fill sets what a message of n bytes may change, and its margins, to
// untouched.
func fill(mem []byte, n int) {
	mem = mem[:n+2*margin]
	for i := range mem {
		mem[i] = untouched
	}
}

var blank = bytes.Repeat([]byte{untouched}, margin)

// holds checks that memory holds want, begins at the margin, and that nothing
// else changed.
func holds(t *testing.T, where string, mem, want []byte) {
	got := mem[margin:][:len(want)]
	if !bytes.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				require.FailNow(t, "wrong data", "%s: byte %d of %d is %#x, not %#x", where, i, len(want), got[i], want[i])
			}
		}
	}
	require.True(t, bytes.Equal(mem[:margin], blank), "%s: written before its begin", where)
	require.True(t, bytes.Equal(mem[margin+len(want):][:margin], blank), "%s: written behind its end", where)
}

// message is a kind of message.
type message struct {
	op    uapi.Op
	wc    uapi.Opcode // completes it
	recv  bool        // uses up a receive
	imm   bool
	flags uapi.SendFlags
}

var messages = []message{
	{op: uapi.OpWrite, wc: uapi.WCOpWrite},
	{op: uapi.OpWriteImm, wc: uapi.WCOpWrite, recv: true, imm: true},
	{op: uapi.OpSend, wc: uapi.WCOpSend, recv: true},
	{op: uapi.OpSendImm, wc: uapi.WCOpSend, recv: true, imm: true},
	{op: uapi.OpRead, wc: uapi.WCOpRead},
}

var immediate uint32 = 0x01020304

// move moves one message of n bytes at from's request and compares every byte.
// With pieces more than 1 the requester's memory is a list of so many.
func move(t *testing.T, from, to *end, m message, n, pieces int) {
	what := fmt.Sprintf("%v of %d bytes, requested by %s", m.op, n, from.name)
	src, dst := from, to // of the data
	if m.op == uapi.OpRead {
		src, dst = to, from
	}
	want := pattern(n)
	copy(src.source(), want)
	fill(dst.target(), n)
	if m.recv {
		recv := uapi.WR{ID: 7, Op: uapi.OpRecv, SGE: []uapi.SGE{{MR: to.mr, Offset: uint64(to.half + margin), Length: uint64(n)}}}
		if m.op == uapi.OpWriteImm {
			recv.SGE = nil // takes no data
		}
		to.post(t, recv)
	}
	wr := uapi.WR{ID: 11, Op: m.op, Flags: uapi.Signaled | m.flags}
	if m.imm {
		immediate += 0x01010101
		wr.Imm = immediate
	}
	if m.op == uapi.OpRead {
		wr.SGE = split(from.mr, from.half+margin, n, pieces)
		wr.RemoteAddr, wr.RKey = to.region.Addr, to.region.RKey
	} else {
		wr.SGE = split(from.mr, 0, n, pieces)
		if !(m.op == uapi.OpSend || m.op == uapi.OpSendImm) {
			wr.RemoteAddr, wr.RKey = to.region.Addr+uint64(to.half+margin), to.region.RKey
		}
	}
	from.post(t, wr)
	if wc := from.success(t, m.wc); wc.WRID != 11 {
		require.FailNow(t, "wrong completion", "%s: %v", what, wc)
	}
	if m.recv {
		kind := uapi.WCOpRecv
		if m.op == uapi.OpWriteImm {
			kind = uapi.WCOpRecvWriteImm
		}
		wc := to.success(t, kind)
		require.EqualValues(t, 7, wc.WRID, what)
		require.EqualValues(t, n, wc.ByteLen, what)
		require.Equal(t, m.imm, wc.Flags&uapi.WCWithImm != 0, what)
		if m.imm {
			require.Equal(t, immediate, wc.Imm, what)
		}
	}
	holds(t, what, dst.target(), want)
	count(1, n)
}

// split cuts n bytes of a region into a list of pieces, as far as they go.
func split(mr uapi.MR, offset, n, pieces int) (list []uapi.SGE) {
	for ; pieces > 1 && n > 1; pieces-- {
		k := n / pieces
		list = append(list, uapi.SGE{MR: mr, Offset: uint64(offset), Length: uint64(k)})
		offset, n = offset+k, n-k
	}
	return append(list, uapi.SGE{MR: mr, Offset: uint64(offset), Length: uint64(n)})
}
