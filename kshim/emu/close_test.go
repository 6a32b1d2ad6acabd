package emu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/stretchr/testify/require"
)

// TestClosedFile: every call on every kind of closed file.
func TestClosedFile(t *testing.T) {
	c := newClient(t, true)
	ch, _ := c.channel()
	async := c.async()
	attr := must.Get(c.proc.Open("/sys/class/infiniband_verbs/abi_version"))(t)
	require.NoError(t, c.f.Close())
	for _, f := range []interface {
		Close() error
		Write([]byte) (int, error)
		Ioctl([]byte) error
		Mmap(uint64, int) ([]byte, error)
		Read(context.Context, []byte) (int, error)
	}{c.f, ch, async, attr} {
		require.NoError(t, f.Close())
		require.NoError(t, f.Close(), "twice")
		_, errWrite := f.Write(make([]byte, 32))
		_, errMmap := f.Mmap(0, 4096)
		_, errRead := f.Read(t.Context(), make([]byte, 16))
		for _, err := range []error{errWrite, f.Ioctl(make([]byte, 32)), errMmap, errRead} {
			require.ErrorIs(t, err, syscall.EBADF)
			require.ErrorIs(t, err, net.ErrClosed)
		}
	}
	must.Fail(c.proc.Adopt(4))(t, syscall.EBADF)
	addr, release := c.f.Pin(make([]byte, 8))
	require.NotZero(t, addr, "memory is the process's, not the file's")
	release()
}

// TestDescriptors: the lowest free number, and no number twice.
func TestDescriptors(t *testing.T) {
	c := newClient(t, true) // 3 and 4
	a, fdA := c.channel()
	_, fdB := c.channel()
	require.Equal(t, []int32{5, 6}, []int32{fdA, fdB})
	require.NoError(t, a.Close())
	_, fdC := c.channel()
	require.Equal(t, int32(5), fdC)
	require.NoError(t, a.Close(), "an old file's second close is not the new one's")
	_, fdD := c.channel()
	require.Equal(t, int32(7), fdD)
	for _, fd := range []int32{-1, 0, 2, 3, 5, 8, 1 << 30, -1 << 31} {
		must.Fail(c.proc.Adopt(fd))(t, syscall.EBADF, "%d", fd)
	}
	c.proc.Exit()
	c.proc.Exit()
	must.Fail(c.proc.Open("/dev/infiniband/uverbs0"))(t, syscall.ESRCH)
	must.Fail(c.proc.Open("/sys/class/infiniband_verbs/abi_version"))(t, syscall.ESRCH)
	require.Nil(t, c.proc.memory.ranges.Load())
}

// storm is many goroutines that give commands with whatever handles they saw,
// until their file has gone. It counts the commands.
func (c *client) storm(rng *rand.Rand, n int, wg *sync.WaitGroup) (given *atomic.Int64) {
	var mu sync.Mutex
	given = new(atomic.Int64)
	seen := [numKinds][]uint32{}
	f, proc := c.f, c.proc
	for range n {
		seed := rng.Uint64()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			page := make([]byte, 256)
			addr, release := f.Pin(page)
			defer release()
			pick := func(k kind) uint32 {
				mu.Lock()
				defer mu.Unlock()
				if len(seen[k]) == 0 {
					return 0
				}
				return seen[k][rng.IntN(len(seen[k]))]
			}
			note := func(k kind) {
				mu.Lock()
				seen[k] = append(seen[k], le.Uint32(page))
				mu.Unlock()
			}
			for {
				clear(page)
				made := kind(numKinds)
				var b []byte
				switch rng.IntN(14) {
				case 0:
					b, made = encode(abi.CmdAllocPD, &abi.AllocPD{Response: addr}, 4), kindPD
				case 1:
					b, made = encode(abi.CmdRegMR, &abi.RegMR{Response: addr, Start: addr, HCAVA: addr, Length: 256, PDHandle: pick(kindPD)}, 12), kindMR
				case 2:
					b, made = encode(abi.CmdCreateCQ, &abi.CreateCQ{Response: addr, CQE: 7, CompChannel: 5}, 24), kindCQ
				case 3, 4:
					b, made = encode(abi.CmdCreateQP, qpRequest(addr, pick(kindPD), pick(kindCQ), pick(kindCQ)), 64), kindQP
				case 5:
					b = encode(abi.CmdDestroyQP, &abi.DestroyQP{Response: addr, QPHandle: pick(kindQP)}, 4)
				case 6:
					b = encode(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: addr, CQHandle: pick(kindCQ)}, 8)
				case 7:
					b = encode(abi.CmdDeregMR, &abi.DeregMR{MRHandle: pick(kindMR)}, 0)
				case 8:
					b = encode(abi.CmdDeallocPD, &abi.DeallocPD{PDHandle: pick(kindPD)}, 0)
				case 9:
					b = encode(abi.CmdModifyQP, []*abi.ModifyQP{initAttr(pick(kindQP)), rtrAttr(pick(kindQP)), rtsAttr(pick(kindQP))}[rng.IntN(3)], 0)
				case 10:
					b = encode(abi.CmdReqNotifyCQ, &abi.ReqNotifyCQ{CQHandle: pick(kindCQ)}, 0)
				case 11:
					b = encode(abi.CmdGetContext, &abi.GetContext{Response: addr}, 8)
				case 12:
					if _, err := readText(proc, fmt.Sprintf("/sys/class/infiniband/fake0/ports/1/qp/%d", 17+rng.IntN(9))); err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, net.ErrClosed) {
						panic(err)
					}
					b = encode(abi.CmdQueryQP, &abi.QueryQP{Response: addr, QPHandle: pick(kindQP)}, 128)
				default:
					b = doorbell(addr, pick(kindQP))
				}
				_, err := f.Write(b)
				given.Add(1)
				switch {
				case err == nil && made < numKinds:
					note(made)
				case errors.Is(err, syscall.EBADF) && errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ESRCH):
					return
				case errors.Is(err, syscall.EIO) && c.f.(*uverbsFile).state.Load() != fileOpen:
					return
				case errors.Is(err, syscall.EBADF) && made != kindCQ:
					panic(err) // only a missing channel is EBADF by itself
				}
			}
		})
	}
	return given
}

// TestDyingObject: an object is found just before it is destroyed, and locked
// just after.
func TestDyingObject(t *testing.T) {
	c := newClient(t, true)
	f := c.f.(*uverbsFile)
	o := f.handles.get(c.pd())
	o.dead = true
	must.Fail(f.acquire(kindPD, o.handle))(t, syscall.ENOENT)
	require.ErrorIs(t, o.end(false), syscall.ENOENT)
	o.dead = false
	require.NoError(t, o.end(false))
}

// TestDoorbellAfterClose: a doorbell that was under way when its file closed
// finds no queue pair, and says why.
func TestDoorbellAfterClose(t *testing.T) {
	c := newClient(t, true)
	qp, _, _ := c.rts()
	late := newCall(c.f.(*uverbsFile))
	require.NoError(t, late.fetchWrite(doorbell(c.addr, qp)))
	require.NoError(t, c.f.Close())
	require.Equal(t, errClosed, late.run())
}

// TestCreateAgainstDestroy: creates that need two objects, in either order, and
// destroys of both, do not wait for one another for ever.
func TestCreateAgainstDestroy(t *testing.T) {
	c := newClient(t, true)
	pd := c.pd()
	var cqs [2]atomic.Uint32
	for i := range cqs {
		h, _ := c.cq(0, -1)
		cqs[i].Store(h)
	}
	buffer := func() (uint64, []byte) {
		b := make([]byte, 64)
		addr, _ := c.f.Pin(b)
		return addr, b
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			addr, page := buffer()
			for range 2000 {
				if _, err := c.f.Write(encode(abi.CmdCreateQP, qpRequest(addr, pd, cqs[i].Load(), cqs[1-i].Load()), 64)); err == nil {
					_, err = c.f.Write(encode(abi.CmdDestroyQP, &abi.DestroyQP{Response: addr, QPHandle: le.Uint32(page)}, 4))
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
		wg.Go(func() {
			addr, page := buffer()
			for range 2000 {
				_, err := c.f.Write(encode(abi.CmdDestroyCQ, &abi.DestroyCQ{Response: addr, CQHandle: cqs[i].Load()}, 8))
				if err != nil {
					continue // in use
				}
				if _, err := c.f.Write(encode(abi.CmdCreateCQ, &abi.CreateCQ{Response: addr, CQE: 1, CompChannel: -1}, 24)); err != nil {
					t.Error(err)
					return
				}
				cqs[i].Store(le.Uint32(page))
			}
		})
	}
	wg.Wait()
}

// TestCloseInTheMiddle closes a file, ends its process or takes its device away
// while commands are on their way, at a random moment. The fake device sees
// every object die once, in order, and none is left.
func TestCloseInTheMiddle(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	first := time.Now().UnixNano()
	before := runtime.NumGoroutine()
	for i := range rounds {
		seed := uint64(first) + uint64(i)
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			c := newClient(t, true)
			ch, _ := c.channel()
			dev := c.m.devices[0]
			readers := make(chan error, 1)
			go func() {
				_, err := ch.Read(context.Background(), make([]byte, 8))
				readers <- err
			}()
			var wg sync.WaitGroup
			given := c.storm(rng, 3, &wg)
			for moment := rng.Int64N(2000); given.Load() < moment; {
				runtime.Gosched()
			}
			ends := []func(){
				func() { require.NoError(t, c.f.Close()) },
				func() { c.proc.Exit() },
				func() { require.NoError(t, c.m.Unregister("fake0")) },
				func() { _ = c.m.Kill(c.proc) }, // ESRCH if Exit was quicker
			}
			if rng.IntN(2) == 0 { // two at once
				wg.Go(ends[rng.IntN(2)])
			}
			ends[rng.IntN(4)]()
			wg.Wait()
			_ = c.f.Close()
			c.dev.Check(t)
			for k := range numKinds {
				require.Zero(t, dev.counts[k].Load(), k)
			}
			require.Empty(t, c.f.(*uverbsFile).rings.pending)
			require.Error(t, <-readers)
			c.m.devices[0] = dev
		}) {
			return
		}
	}
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("goroutines left:\n%s", stacks[:runtime.Stack(stacks, true)])
		}
	}
}
