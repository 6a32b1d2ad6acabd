package nvme

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/nvme/wire"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// raw is a host's queue pair whose capsules a test writes.
type raw struct {
	t  *testing.T
	d  *uapi.Device
	qp uapi.QP
	mr uapi.MR
	// Of the memory: capsules are sent from the first 16 KiB, data is in the
	// second, responses come to the third.
	buf    []byte
	region uapi.Region
}

// dialRaw connects queue pair id, with as many receives as a host has.
func dialRaw(t *testing.T, d *uapi.Device, addr string, private []byte) (*raw, error) {
	t.Helper()
	r := &raw{t: t, d: d, buf: make([]byte, 48<<10)}
	var err error
	r.mr, r.region, err = d.RegRegion(r.buf, uapi.MRConfig{Access: uapi.AccessLocalWrite | uapi.AccessRemoteRead | uapi.AccessRemoteWrite})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.DeregMR(r.mr)) })
	r.qp, err = d.Dial(t.Context(), addr, uapi.DialConfig{Private: private, QPConfig: uapi.QPConfig{SendDepth: 64, RecvDepth: 64}, Prepare: func(qp uapi.QP) error {
		for i := range 64 {
			if _, err := d.PostRecv(qp, r.mr, uint64(32<<10+16*i), 16); err != nil {
				return err
			}
		}
		return nil
	}})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, d.DestroyQP(r.qp)) })
	}
	return r, err
}

var (
	adminQueue = wire.ConnRequest{HostRecv: 32, HostSend: 31}
	ioQueue    = wire.ConnRequest{Queue: 1, HostRecv: 32, HostSend: 31}
	adminData  = wire.ConnectData{Controller: wire.AnyController, Subsystem: DefaultSubsystem, Host: "raw"}
	adminWords = [6]uint32{0, 31}
)

// send sends bytes as a capsule.
func (r *raw) send(b []byte) {
	r.t.Helper()
	copy(r.buf, b)
	must.Get(r.d.PostSend(r.qp, r.mr, uint64(len(b))))(r.t)
}

// next is the next response; an error is why the connection has ended.
func (r *raw) next() (wire.Completion, error) {
	for {
		var wc [1]uapi.WC
		if _, err := r.d.WaitCQ(r.t.Context(), r.qp, wc[:]); err != nil {
			return wire.Completion{}, err
		}
		if err := wc[0].Err(); err != nil {
			return wire.Completion{}, err
		}
		if wc[0].Opcode == uapi.WCOpRecv {
			return wire.ParseCompletion(r.buf[32<<10+16*int(wc[0].WRID):][:wc[0].ByteLen])
		}
	}
}

// connect sends a connect command with its data in the capsule.
func (r *raw) connect(words [6]uint32, data wire.ConnectData) (wire.Completion, error) {
	r.t.Helper()
	c := wire.Command{Opcode: wire.OpFabrics, Fabrics: wire.FabricsConnect, Words: words, Data: wire.SGL{Kind: wire.SGLInCapsule, Length: wire.ConnectSize}}
	r.send(data.Append(c.Append(nil)))
	return r.next()
}

// enable connects the admin queue and turns the controller on.
func (r *raw) enable() {
	r.t.Helper()
	must.Get(r.connect(adminWords, adminData))(r.t)
	set := wire.Command{Opcode: wire.OpFabrics, Words: [6]uint32{0, uint32(wire.PropertyCC), 0x460001}, Data: wire.SGL{Kind: wire.SGLKeyed}}
	r.send(set.Append(nil))
	require.Zero(r.t, must.Get(r.next())(r.t).Status)
}

// TestRefusedQueues: requests for queue pairs that no host makes are refused
// with their reason.
func TestRefusedQueues(t *testing.T) {
	d, addr := serve(t, "", &Target{Disks: []Disk{newMemory(4096)}})
	for name, c := range map[string]struct {
		private []byte
		want    wire.Refusal
	}{
		"nothing":       {nil, wire.RefusedHostSend},
		"format":        {wire.ConnRequest{Format: 1, HostRecv: 32, HostSend: 31}.Append(nil), wire.RefusedFormat},
		"queue":         {wire.ConnRequest{Queue: 17, HostRecv: 32, HostSend: 31}.Append(nil), wire.RefusedQueue},
		"too deep":      {wire.ConnRequest{HostRecv: 65, HostSend: 64}.Append(nil), wire.RefusedHostSend},
		"few receives":  {wire.ConnRequest{HostRecv: 1, HostSend: 31}.Append(nil), wire.RefusedHostRecv},
		"all bits set":  {[]byte("\xff\xff\xff\xff\xff\xff\xff\xff"), wire.RefusedFormat},
		"largest depth": {wire.ConnRequest{HostRecv: 0xffff, HostSend: 0xffff}.Append(nil), wire.RefusedHostSend},
	} {
		_, err := dialRaw(t, d, addr, c.private)
		var rejected *uapi.RejectError
		require.ErrorAs(t, err, &rejected, name)
		require.Equal(t, c.want, must.Get(wire.ParseRefusal(rejected.PrivateData))(t), name)
	}
}

// TestRefusedConnects: a connect command that fits no queue or controller has a
// status that says where it is wrong, and the host may try again.
func TestRefusedConnects(t *testing.T) {
	d, addr := serve(t, "", &Target{Disks: []Disk{newMemory(4096)}})
	with := func(change func(d *wire.ConnectData)) wire.ConnectData {
		d := adminData
		change(&d)
		return d
	}
	admin := must.Get(dialRaw(t, d, addr, adminQueue.Append(nil)))(t)
	for name, c := range map[string]struct {
		words [6]uint32
		data  wire.ConnectData
		want  uint64
	}{
		"queue":         {[6]uint32{1 << 16, 31}, adminData, wire.AtQueue},
		"no depth":      {[6]uint32{0, 0}, adminData, wire.AtDepth},
		"deeper":        {[6]uint32{0, 32}, adminData, wire.AtDepth},
		"subsystem":     {adminWords, with(func(d *wire.ConnectData) { d.Subsystem = "other" }), wire.AtSubsystem},
		"no host":       {adminWords, with(func(d *wire.ConnectData) { d.Host = "" }), wire.AtHost},
		"no controller": {adminWords, with(func(d *wire.ConnectData) { d.Controller = 1 }), wire.AtController},
	} {
		r := must.Get(admin.connect(c.words, c.data))(t)
		require.Equal(t, []any{wire.InvalidParam | wire.DoNotRetry, c.want}, []any{r.Status, r.Result}, name)
	}
	id := uint16(must.Get(admin.connect(adminWords, adminData))(t).Result)

	joined := 0
	for name, c := range map[string]struct {
		data wire.ConnectData
		ok   bool
	}{
		"stranger":         {with(func(d *wire.ConnectData) { d.Controller, d.Host = id, "other" }), false},
		"other host id":    {with(func(d *wire.ConnectData) { d.Controller, d.HostID[3] = id, 1 }), false},
		"other controller": {with(func(d *wire.ConnectData) { d.Controller = id + 1 }), false},
		"new controller":   {adminData, false},
		"ours":             {with(func(d *wire.ConnectData) { d.Controller = id }), true},
		"ours, again":      {with(func(d *wire.ConnectData) { d.Controller = id }), true},
	} {
		q := must.Get(dialRaw(t, d, addr, ioQueue.Append(nil)))(t)
		r := must.Get(q.connect([6]uint32{1 << 16, 31}, c.data))(t)
		require.True(t, c.ok || r.Status == wire.InvalidParam|wire.DoNotRetry, name)
		if r.Status == wire.Success {
			joined++
		}
	}
	require.Equal(t, 1, joined, "a queue joins once")
}

// TestBadCommands: each capsule has a status, or ends its connection and no
// other, and the disk stays as it is.
func TestBadCommands(t *testing.T) {
	disk := newMemory(64 << 10)
	d, addr := serve(t, "", &Target{Disks: []Disk{disk}})
	good := connect(t, d, addr, HostConfig{})
	const ended = wire.Status(0xffff)
	write := func(sgl wire.SGL, behind int) []byte {
		c := wire.Command{Opcode: wire.OpWrite, Namespace: 1, Data: sgl}
		c.SetBlocks(0, 2)
		return append(c.Append(nil), make([]byte, behind)...)
	}
	read := func(r *raw, sgl wire.SGL) []byte {
		c := wire.Command{Opcode: wire.OpRead, Namespace: 1, Data: sgl}
		c.SetBlocks(0, 2)
		return c.Append(nil)
	}
	for name, c := range map[string]struct {
		capsule func(r *raw) []byte
		want    wire.Status
	}{
		"zero bytes":     {func(*raw) []byte { return nil }, ended},
		"63 bytes":       {func(*raw) []byte { return make([]byte, 63) }, ended},
		"8 KiB too long": {func(*raw) []byte { return make([]byte, 16<<10) }, ended},
		"zeroes":         {func(*raw) []byte { return make([]byte, 64) }, wire.InvalidField},
		"PRP":            {func(*raw) []byte { return (&wire.Command{PRP: true}).Append(nil) }, wire.InvalidField},
		"SGL type":       {func(*raw) []byte { return write(wire.SGL{Kind: 0x30}, 0) }, wire.InvalidSGL},
		"data missing":   {func(*raw) []byte { return write(wire.SGL{Kind: wire.SGLInCapsule, Length: 1024}, 1023) }, wire.InvalidOffset},
		"data beyond":    {func(*raw) []byte { return write(wire.SGL{Kind: wire.SGLInCapsule, Addr: 1, Length: 1024}, 1024) }, wire.InvalidOffset},
		"offset wraps": {func(*raw) []byte {
			return write(wire.SGL{Kind: wire.SGLInCapsule, Addr: 1<<64 - 512, Length: 1024}, 1024)
		}, wire.InvalidOffset},
		"length of 2^32": {func(*raw) []byte { return write(wire.SGL{Kind: wire.SGLInCapsule, Length: 1<<32 - 1}, 1024) }, wire.InvalidOffset},
		"read to capsule": {func(r *raw) []byte {
			return append(read(r, wire.SGL{Kind: wire.SGLInCapsule, Length: 1024}), make([]byte, 1024)...)
		}, wire.InvalidSGL},
		"write, no key": {func(r *raw) []byte {
			return write(wire.SGL{Kind: wire.SGLKeyed, Addr: r.region.Addr, Length: 1024, Key: r.region.RKey ^ 1}, 0)
		}, ended},
		"read, no key": {func(r *raw) []byte {
			return read(r, wire.SGL{Kind: wire.SGLKeyed, Addr: r.region.Addr, Length: 1024, Key: r.region.RKey ^ 1})
		}, ended},
		"read over the end": {func(r *raw) []byte {
			return read(r, wire.SGL{Kind: wire.SGLKeyed, Addr: r.region.Addr + 48<<10 - 512, Length: 1024, Key: r.region.RKey})
		}, ended},
		"other key revoked": {func(r *raw) []byte {
			return read(r, wire.SGL{Kind: wire.SGLInvalidate, Addr: r.region.Addr + 16<<10, Length: 1024, Key: r.region.RKey})
		}, ended},
	} {
		t.Run(name, func(t *testing.T) {
			r := dialIO(t, d, addr)
			r.send(c.capsule(r))
			answer, err := r.next()
			if c.want == ended {
				require.Error(t, err, "status %v", answer.Status)
			} else {
				require.NoError(t, err)
				require.Equal(t, c.want, answer.Status&^wire.DoNotRetry)
			}
			require.NoError(t, good.Namespaces[1].ReadAt(t.Context(), make([]byte, 4096), 0))
		})
	}
	require.Equal(t, make([]byte, 64<<10), disk.b)
}

// dialIO is the first I/O queue of a controller of its own, connected.
func dialIO(t *testing.T, d *uapi.Device, addr string) *raw {
	t.Helper()
	admin := must.Get(dialRaw(t, d, addr, adminQueue.Append(nil)))(t)
	admin.enable()
	data := adminData
	data.Controller = uint16(admin.controller())
	r := must.Get(dialRaw(t, d, addr, ioQueue.Append(nil)))(t)
	must.Get(r.connect([6]uint32{1 << 16, 31}, data))(t)
	return r
}

// controller asks for the number of the queue's controller.
func (r *raw) controller() uint64 {
	r.t.Helper()
	c := wire.Command{Opcode: wire.AdminIdentify, Words: [6]uint32{wire.IdentifyController},
		Data: wire.SGL{Kind: wire.SGLKeyed, Addr: r.region.Addr + 16<<10, Length: 4096, Key: r.region.RKey}}
	r.send(c.Append(nil))
	require.Zero(r.t, must.Get(r.next())(r.t).Status)
	return uint64(must.Get(wire.ParseController(r.buf[16<<10:]))(r.t).ID)
}

// TestWrongOrder: before a queue is connected, and before its controller is
// turned on, commands do nothing.
func TestWrongOrder(t *testing.T) {
	d, addr := serve(t, "", &Target{Disks: []Disk{newMemory(4096)}})
	r := must.Get(dialRaw(t, d, addr, adminQueue.Append(nil)))(t)
	identify := wire.Command{Opcode: wire.AdminIdentify, Words: [6]uint32{1}, Data: wire.SGL{Kind: wire.SGLKeyed, Length: 4096}}
	get := wire.Command{Opcode: wire.OpFabrics, Fabrics: wire.FabricsGet, Data: wire.SGL{Kind: wire.SGLKeyed}}
	refused := func(c wire.Command) {
		t.Helper()
		r.send(c.Append(nil))
		require.Equal(t, wire.WrongOrder|wire.DoNotRetry, must.Get(r.next())(t).Status)
	}
	refused(identify)
	refused(get)
	must.Get(r.connect(adminWords, adminData))(t)
	refused(identify)
	r.send(get.Append(nil))
	answer := must.Get(r.next())(t)
	require.Zero(t, answer.Status)
	require.EqualValues(t, maxDepth-1, answer.Result&0xffff)
}

// TestSameMemory: SGLs of commands that are outstanding together may overlap.
// All of their data arrives.
func TestSameMemory(t *testing.T) {
	disk := newMemory(64 << 10)
	for i := range disk.b {
		disk.b[i] = 7
	}
	d, addr := serve(t, "", &Target{Disks: []Disk{disk}})
	r := dialIO(t, d, addr)
	for i := range 31 {
		c := wire.Command{Opcode: wire.OpRead, Namespace: 1, ID: 5, Data: wire.SGL{Kind: wire.SGLKeyed, Addr: r.region.Addr + 16<<10 + uint64(i), Length: 4096, Key: r.region.RKey}}
		c.SetBlocks(0, 8)
		copy(r.buf[256*i:], c.Append(nil))
		must.Get(d.PostSendAt(r.qp, r.mr, uint64(256*i), wire.CommandSize))(t)
	}
	for range 31 {
		answer := must.Get(r.next())(t)
		require.EqualValues(t, 5, answer.ID)
		require.Zero(t, answer.Status)
	}
	require.Equal(t, disk.b[:4096+30], r.buf[16<<10:][:4096+30])
}

// TestKeepAlive: a controller whose host has been silent ends, with all its
// queues; one that says each half of the time that it lives stays.
func TestKeepAlive(t *testing.T) {
	target := &Target{Disks: []Disk{newMemory(4096)}}
	d, addr := serve(t, "", target)
	alive := connect(t, d, addr, HostConfig{KeepAlive: time.Second, Name: "alive"})
	r := must.Get(dialRaw(t, d, addr, adminQueue.Append(nil)))(t)
	must.Get(r.connect([6]uint32{0, 31, 1}, adminData))(t) // 1 ms, and the second that a busy machine may need
	select {
	case <-d.Done(r.qp):
	case <-t.Context().Done():
	}
	cause := must.Get(d.Cause(r.qp))(t)
	require.ErrorIs(t, cause, uapi.ErrPeerDisconnected)
	require.NoError(t, alive.Namespaces[1].Flush(t.Context()))
}

// TestManyConnects: hosts that come and go, also in the middle of connecting,
// leave nothing, and those for which there is no seat are told so.
func TestManyConnects(t *testing.T) {
	n := 300
	if amount.All() {
		n = 10_000
	}
	target := &Target{Disks: []Disk{newMemory(4096)}, Seats: peer.Seats{Most: 8, Share: 8}}
	d, addr := serve(t, "", target)
	var refused, served int
	var mu sync.Mutex
	var all sync.WaitGroup
	limit := make(chan struct{}, 16)
	for i := range n {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				cancel()
			}
			qp, err := d.Dial(ctx, addr, uapi.DialConfig{Private: adminQueue.Append(nil)})
			mu.Lock()
			defer mu.Unlock()
			var rejected *uapi.RejectError
			switch {
			case err == nil:
				served++
				if err := d.DestroyQP(qp); err != nil {
					t.Error(err)
				}
			case errors.As(err, &rejected):
				refused++
			case !errors.Is(err, context.Canceled):
				t.Error(err)
			}
		})
	}
	all.Wait()
	require.NotZero(t, served)
	t.Logf("%d served, %d refused", served, refused)
	for { // the last ones may hold their seats yet
		h, err := Connect(t.Context(), d, addr, HostConfig{})
		var rejected *uapi.RejectError
		if errors.As(err, &rejected) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, h.Namespaces[1].Flush(t.Context()))
		require.NoError(t, h.Close())
		return
	}
}
