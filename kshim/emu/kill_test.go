package emu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// victim is a client of a module's device that is to be killed.
type victim struct {
	*client
	readers sync.WaitGroup
	ends    []error // of the reads; each reader writes its own
}

func newVictim(t testing.TB) *victim {
	m, dev := New(), kerneltest.NewDevice("fake0")
	require.NoError(t, m.Install(driverModule("soft", dev)))
	require.NoError(t, m.Insmod("soft"))
	v := &victim{client: &client{t: t, m: m, dev: dev, proc: m.Process("victim"), page: make([]byte, 4096)}}
	v.ends = make([]error, 16)
	return v
}

// read blocks a reader on the event file behind a number.
func (v *victim) read(fd int32) {
	f, err := v.proc.Adopt(fd)
	if err != nil {
		return
	}
	end := &v.ends[fd]
	v.readers.Go(func() { _, *end = f.Read(context.Background(), make([]byte, 16)) })
}

// give gives a command, and answers the first word of its response. It may
// fail: the process may be dead.
func (v *victim) give(n abi.Command, req abi.Struct, out int) uint32 {
	_, _ = v.f.Write(encode(n, req, out))
	return le.Uint32(v.page)
}

// script gives every command, with blocked readers beside it, and leaves
// objects of every kind.
func (v *victim) script() {
	f, err := v.proc.Open("/dev/infiniband/uverbs0")
	if err != nil {
		return
	}
	v.f = f
	v.addr, _ = f.Pin(v.page)
	v.give(abi.CmdGetContext, &abi.GetContext{Response: v.addr}, 8)
	v.read(4)
	v.give(abi.CmdQueryDevice, &abi.QueryDevice{Response: v.addr}, abi.QueryDeviceRespSize)
	v.give(abi.CmdQueryPort, &abi.QueryPort{Response: v.addr, PortNum: 1}, abi.QueryPortRespSize)
	arg := argument(abi.ObjectDevice, abi.MethodQueryGIDEntry,
		attr(abi.AttrQueryGIDEntryPort, 8, 1), attr(abi.AttrQueryGIDEntryGIDIndex, 8, 0),
		attr(abi.AttrQueryGIDEntryFlags, 4, 0), attr(abi.AttrQueryGIDEntryRespEntry, 32, v.addr))
	f.Pin(arg)
	_ = f.Ioctl(arg)
	v.give(abi.CmdCreateCompChannel, &abi.CreateCompChannel{Response: v.addr}, 4)
	v.read(5)
	v.round(true)
	v.round(false)
}

func (v *victim) round(destroy bool) {
	f := v.f
	pd := v.give(abi.CmdAllocPD, &abi.AllocPD{Response: v.addr}, 4)
	other := v.give(abi.CmdAllocPD, &abi.AllocPD{Response: v.addr}, 4)
	mr := v.give(abi.CmdRegMR, &abi.RegMR{
		Response: v.addr, Start: v.addr, HCAVA: v.addr, Length: 4096, PDHandle: pd, AccessFlags: 1,
	}, 12)
	v.give(abi.CmdReregMR, &abi.ReregMR{Response: v.addr, MRHandle: mr, Flags: abi.ReregPD, PDHandle: other}, abi.ReregMRRespSize)
	ah := v.give(abi.CmdCreateAH, ahRequest(v.addr, pd), 12)
	cq := v.give(abi.CmdCreateCQ, &abi.CreateCQ{Response: v.addr, CQE: 7, CompChannel: 5}, 24)
	v.give(abi.CmdResizeCQ, &abi.ResizeCQ{Response: v.addr, CQHandle: cq, CQE: 15}, abi.ResizeCQRespSize+abi.RXEResizeCQRespSize)
	v.give(abi.CmdReqNotifyCQ, &abi.ReqNotifyCQ{CQHandle: cq}, 0)
	qp := v.give(abi.CmdCreateQP, qpRequest(v.addr, pd, cq, cq), 64)
	for _, a := range []*abi.ModifyQP{initAttr(qp), rtrAttr(qp), rtsAttr(qp)} {
		v.give(abi.CmdModifyQP, a, 0)
	}
	v.give(abi.CmdQueryQP, &abi.QueryQP{Response: v.addr, QPHandle: qp}, abi.QueryQPRespSize)
	_, _ = f.Write(doorbell(v.addr, qp))
	if !destroy {
		return
	}
	v.give(abi.CmdDestroyQP, &abi.DestroyQP{Response: v.addr, QPHandle: qp}, 4)
	v.give(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: v.addr, CQHandle: cq}, 8)
	v.give(abi.CmdDestroyAH, &abi.DestroyAH{AHHandle: ah}, 0)
	v.give(abi.CmdDeregMR, &abi.DeregMR{MRHandle: mr}, 0)
	v.give(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pd}, 0)
}

// buried looks for objects that are left when all must have gone.
func (v *victim) buried() {
	v.t.Helper()
	<-v.proc.Done()
	v.readers.Wait()
	for _, err := range v.ends {
		if err != nil {
			require.ErrorIs(v.t, err, net.ErrClosed)
		}
	}
	v.dev.Check(v.t)
	v.proc.mu.Lock()
	defer v.proc.mu.Unlock()
	for _, e := range v.proc.files {
		require.Nil(v.t, e.file)
	}
	require.Empty(v.t, v.proc.memory.live, "pinned memory")
	require.Empty(v.t, v.proc.maps.all)
	dev := v.m.devices[0]
	for k := range numKinds {
		require.Zero(v.t, dev.counts[k].Load(), k)
	}
	require.Empty(v.t, dev.files)
	require.Empty(v.t, dev.qps)
	require.NoError(v.t, v.m.Rmmod("soft"))
	require.NoError(v.t, v.m.Rmmod("ib_uverbs"))
}

// TestKillAtEveryStep kills a process whenever one of its commands enters or
// leaves the driver: from within, as a driver's own thread might, and from
// beside, while the command is kept there.
func TestKillAtEveryStep(t *testing.T) {
	var steps []string
	v := newVictim(t)
	v.dev.Hook = func(step string) { steps = append(steps, step) }
	v.script()
	script := len(steps)
	require.NoError(t, v.m.Kill(v.proc))
	v.buried()
	for _, call := range []string{
		"QueryDevice", "QueryPort", "GIDs", "AllocPD", "PD.Dealloc", "RegMR", "MR.Rereg", "MR.Dereg", "CreateAH", "AH.Destroy",
		"CreateCQ", "CQ.Resize", "CQ.Arm", "CQ.Destroy", "CreateQP", "QP.Modify", "QP.Query", "QP.Doorbell", "QP.Destroy",
	} {
		require.Contains(t, steps[:script], call)
		require.Contains(t, steps[:script], "end of "+call)
	}
	for i, step := range steps[:script] {
		for _, from := range []string{"within", "beside"} {
			t.Run(fmt.Sprintf("%d %s, from %s", i, step, from), func(t *testing.T) { killAt(t, i, from == "beside") })
		}
	}
}

func killAt(t *testing.T, at int, beside bool) {
	v := newVictim(t)
	var seen []byte
	n := -1
	v.dev.Hook = func(step string) {
		if n++; n != at {
			return
		}
		if beside {
			done := make(chan error)
			go func() { done <- v.m.Kill(v.proc) }()
			require.NoError(t, <-done)
		} else {
			require.NoError(t, v.m.Kill(v.proc))
		}
		seen = bytes.Clone(v.page)
		require.ErrorIs(t, v.m.Kill(v.proc), syscall.ESRCH)
		// Objects that this command does not hold have gone already.
		v.dev.Do(func() {
			for _, kind := range v.dev.Live {
				require.True(t, strings.Contains(step, "MR") || kind != "mr", "a region is left at %s", step)
				require.True(t, strings.Contains(step, "Q") || strings.Contains(step, "GID") || kind != "qp", "a queue pair is left at %s", step)
			}
		})
	}
	v.script()
	require.NotNil(t, seen)
	require.Equal(t, seen, v.page, "memory was touched after Kill")
	_, err := v.f.Write(encode(abi.CmdAllocPD, &abi.AllocPD{Response: v.addr}, 4))
	require.ErrorIs(t, err, syscall.ESRCH)
	require.ErrorIs(t, v.f.Ioctl(make([]byte, 24)), syscall.ESRCH)
	must.Fail(v.f.Mmap(0, 4096))(t, syscall.ESRCH)
	must.Fail(v.proc.Open("/proc/modules"))(t, syscall.ESRCH)
	require.NoError(t, v.f.Close())
	v.proc.Exit()
	v.buried()
}

// TestKillIdle: nothing holds anything, so nothing is left when Kill returns.
func TestKillIdle(t *testing.T) {
	v := newVictim(t)
	v.script()
	sq := v.dev.Last.SQ.Mapping()
	ring := must.Get(v.f.Mmap(v.offset(sq), len(sq)))(t)
	require.NotEmpty(t, ring)
	require.ErrorIs(t, New().Kill(v.proc), syscall.ESRCH, "another machine's")
	require.NoError(t, v.m.Kill(v.proc))
	select {
	case <-v.proc.Done():
	default:
		t.Fatal("not all is gone")
	}
	v.buried()
}

// offset finds where the queue pair's send queue can be mapped.
func (v *victim) offset(sq []byte) uint64 {
	for offset, m := range v.f.(*uverbsFile).rings.pending {
		if &m.bytes[0] == &sq[0] {
			return offset
		}
	}
	return 0
}

// TestKillAfterUnplug: objects that outlived their device, and a device that
// goes while its dead user's command is still inside.
func TestKillAfterUnplug(t *testing.T) {
	v := newVictim(t)
	v.script()
	dev := v.m.devices[0]
	require.NoError(t, v.m.Unregister("fake0"))
	require.NoError(t, v.m.Kill(v.proc))
	v.m.devices[0] = dev
	<-v.proc.Done()
	require.True(t, v.f.(*uverbsFile).handles.empty())

	v = newVictim(t)
	inside, goOn := make(chan bool), make(chan bool)
	v.dev.Hook = func(step string) {
		if step == "QP.Query" {
			inside <- true
			<-goOn
		}
	}
	var wg sync.WaitGroup
	wg.Go(v.script)
	<-inside
	require.NoError(t, v.m.Kill(v.proc))
	wg.Go(func() { require.NoError(t, v.m.Unregister("fake0")) })
	wg.Go(v.proc.Exit)
	for range 1000 {
		runtime.Gosched()
	}
	v.dev.Do(func() { require.False(t, v.dev.Closed, "its user's command is still inside") })
	close(goOn)
	wg.Wait()
	require.True(t, v.dev.Closed)
	v.readers.Wait()
	v.dev.Check(t)
}

// TestKillInTheMiddle kills, from beside and from within, among many commands
// at once, at a moment that the seed decides.
func TestKillInTheMiddle(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 20
	}
	first := uint64(time.Now().UnixNano())
	for i := range uint64(rounds) {
		if !t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) { killInTheMiddle(t, first+i) }) {
			return
		}
	}
}

func killInTheMiddle(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	v := newVictim(t)
	v.open(true)
	v.read(4)
	v.give(abi.CmdCreateCompChannel, &abi.CreateCompChannel{Response: v.addr}, 4)
	v.read(5)
	private := make([]byte, 8192) // no other call's response
	addr, _ := v.f.Pin(private)
	within := rng.IntN(2) == 0
	after := rng.IntN(3000)
	var killed atomic.Bool
	var seen []byte
	kill := func() { // comes here again, as it destroys
		if killed.CompareAndSwap(false, true) {
			require.NoError(t, v.m.Kill(v.proc))
			seen = bytes.Clone(private)
		}
	}
	var calls atomic.Int64
	if within {
		v.dev.Hook = func(string) {
			if calls.Add(1) > int64(after) {
				kill()
			}
		}
	}
	var wg sync.WaitGroup
	given := v.storm(rng, 3, &wg)
	wg.Go(func() {
		for i := 0; ; i++ {
			at := uint64(i%16) * 512
			_, err := v.f.Write(encode(abi.CmdQueryDevice, &abi.QueryDevice{Response: addr + at}, abi.QueryDeviceRespSize))
			if errors.Is(err, syscall.ESRCH) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	if within {
		wg.Wait()
	} else {
		for given.Load() < int64(after) {
			runtime.Gosched()
		}
		kill()
		wg.Wait()
	}
	require.Equal(t, seen, private, "memory was touched after Kill")
	v.buried()
}

// TestKillWithIDs: files of the connection manager end as well, also without a
// waiter.
func TestKillWithIDs(t *testing.T) {
	m := New()
	require.NoError(t, m.Register(kerneltest.NewCMWire().Device("one", "10.0.0.1")))
	p := m.Process("p")
	f := must.Get(p.Open("/dev/infiniband/rdma_cm"))(t)
	require.NoError(t, m.Kill(p))
	<-p.Done()
	must.Fail(f.Write(make([]byte, 8)))(t, net.ErrClosed)
	require.NoError(t, f.Close())

	q := m.Process("q")
	must.Get(q.Open("/dev/infiniband/rdma_cm"))(t)
	q.Exit()
	<-q.Done()
}
