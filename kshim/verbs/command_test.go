package verbs

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/kerneltest"
)

func TestDoorbellFallsBackToIoctl(t *testing.T) {
	b := newBed(t, eight).connect()
	b.Do(func() { b.Writes = syscall.EACCES })
	n, err := b.qp.Post([]SendWR{{ID: 5, Opcode: abi.WRSend, Flags: abi.SendSignaled}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	calls := b.Taken()
	require.Len(t, calls, 1)
	require.False(t, calls[0].Written)
	require.Equal(t, abi.CmdPostSend, calls[0].Cmd)
	require.Equal(t, []uint64{5}, ids(poll(t, b.scq)))

	b.Do(func() { b.Writes = syscall.EIO })
	n, err = b.qp.Post([]SendWR{{ID: 6, Opcode: abi.WRSend, Flags: abi.SendSignaled}})
	require.ErrorIs(t, err, syscall.EIO)
	require.Equal(t, 1, n)
}

// A queue is armed by write(), as a doorbell rings, and by ioctl where that is
// refused.
func TestArmCalls(t *testing.T) {
	b := newBed(t, eight).connect()
	for _, refused := range []error{nil, syscall.EACCES} {
		b.Do(func() { b.Writes = refused })
		require.NoError(t, b.scq.Arm(true))
		calls := b.Taken()
		require.Len(t, calls, 1)
		require.Equal(t, refused == nil, calls[0].Written)
		require.Equal(t, abi.CmdReqNotifyCQ, calls[0].Cmd)
	}
	b.Do(func() { b.Writes = syscall.EIO })
	require.ErrorIs(t, b.scq.Arm(false), syscall.EIO)
}

// TestCommandsSideBySide: a command that sleeps in the kernel holds no other
// up, until the bound is reached; then commands wait their turn.
func TestCommandsSideBySide(t *testing.T) {
	k := newFake(t)
	c := k.open()
	var mu sync.Mutex
	inside, most := 0, 0
	full, leave := make(chan struct{}), make(chan struct{})
	k.Before = func(*kerneltest.Call) {
		mu.Lock()
		if inside++; inside > most {
			if most = inside; most == maxScratch {
				close(full)
			}
		}
		mu.Unlock()
		<-leave
		mu.Lock()
		inside--
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for range 3 * maxScratch {
		wg.Go(func() {
			if _, err := c.QueryPort(1); err != nil {
				t.Error(err)
			}
		})
	}
	select {
	case <-full:
	case <-time.After(time.Minute):
		t.Error("commands wait for each other")
	}
	close(leave)
	wg.Wait()
	require.Equal(t, maxScratch, most, "no more than the bound")
}

// TestCommandsTakeTurns: a command that waits for its turn comes before one
// that begins when a turn is free again.
func TestCommandsTakeTurns(t *testing.T) {
	k := newFake(t)
	c := k.open()
	synctest.Test(t, func(t *testing.T) {
		cmd := newCommander(c.cmd.file)
		var under []*scratch
		for range maxScratch {
			under = append(under, cmd.take())
		}
		served := make(chan string, 2)
		go func() {
			s := cmd.take()
			served <- "waited"
			cmd.give(s)
		}()
		synctest.Wait()
		cmd.give(under[0])
		under[0] = cmd.take()
		served <- "came later"
		require.Equal(t, "waited", <-served)
		for _, s := range under {
			cmd.give(s)
			s.release()
		}
		<-served
	})
}

// TestConcurrentUse runs everything at once; it means most under -race.
func TestConcurrentUse(t *testing.T) {
	b := newBed(t, QPInit{MaxSendWR: 64, MaxRecvWR: 64}).connect()
	b.Record = false
	const each = 300
	var wg sync.WaitGroup
	ctx := t.Context()
	var mu sync.Mutex
	seen := map[uint64]int{}
	for w := range 3 {
		wg.Go(func() {
			for i := 0; i < each; {
				n, err := b.qp.Post([]SendWR{{ID: uint64(w*each + i), Opcode: abi.WRSend, Flags: abi.SendSignaled}})
				if n == 0 && !errors.Is(err, syscall.ENOMEM) {
					t.Error(err)
					return
				}
				i += n
			}
		})
		wg.Go(func() {
			wc := make([]WC, 2)
			for {
				n, err := b.scq.Wait(ctx, wc)
				if err != nil {
					if !errors.Is(err, net.ErrClosed) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				for _, c := range wc[:n] {
					seen[c.ID]++
				}
				all := len(seen) == 3*each
				mu.Unlock()
				if all {
					b.c.Close()
				}
			}
		})
		wg.Go(func() {
			for {
				mr, err := b.pd.RegMR(make([]byte, 10), 0)
				if err == nil {
					err = mr.Dereg()
				}
				if err == nil {
					_, err = b.qp.Query()
				}
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, 3*each)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
}
