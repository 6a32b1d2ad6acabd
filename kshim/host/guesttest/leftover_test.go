//go:build guest && linux

package guesttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// holdings are the RDMA resources of this process and of the kernel:
// descriptors, mappings, memory pinned by the kernel, and the device's objects.
func holdings(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	links := must.Get(filepath.Glob("/proc/self/fd/*"))(t)
	for _, l := range links {
		if to, _ := os.Readlink(l); strings.Contains(to, "infiniband") {
			fmt.Fprintln(&b, "descriptor", filepath.Base(l), to)
		}
	}
	for _, what := range []struct{ file, holds string }{{"/proc/self/maps", "infiniband"}, {"/proc/self/status", "VmPin"}} {
		text := must.Get(os.ReadFile(what.file))(t)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, what.holds) {
				b.WriteString(line)
			}
		}
	}
	m := must.Get(netlinkmgr.Open())(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	d := must.Get(m.Device(ctx, device))(t)
	objects := must.Get(m.Summary(ctx, d))(t)
	fmt.Fprintln(&b, objects)
	return b.String()
}

// everythingOpen makes one of each on the device, with work in flight.
func everythingOpen(t testing.TB) (p *pair, memory weak.Pointer[byte]) {
	t.Helper()
	p = &pair{bufA: make([]byte, 1<<16), bufB: make([]byte, 1<<16)}
	p.a = must.Get(uapi.Open(device, uapi.OpenConfig{}))(t)
	p.ma = must.Get(p.a.RegMR(p.bufA, everything))(t)
	p.at = must.Get(p.a.QueryMR(p.ma))(t)
	must.Get(p.a.CreateCQ(100))(t)
	p.qa = must.Get(p.a.CreateQP(16, 16))(t)
	self := must.Get(p.a.LocalEndpoint(p.qa))(t)
	require.NoError(t, p.a.ConnectQP(p.qa, self))
	for range 8 {
		must.Get(p.a.PostRecv(p.qa, p.ma, 0, 4096))(t)
		must.Get(p.a.PostWrite(p.qa, p.ma, 0, p.at.Addr, p.at.RKey, 1<<16))(t)
	}
	return p, weak.Make(&p.bufA[0])
}

// TestNothingIsLeft: after Close neither the process nor the kernel holds
// anything, whether objects were destroyed before or not, and memory is the
// garbage collector's again.
func TestNothingIsLeft(t *testing.T) {
	kernel(t)
	before := holdings(t)
	require.Contains(t, before, "VmPin:\t       0 kB")
	for name, orderly := range map[string]bool{"in order": true, "all at once": false} {
		p, memory := everythingOpen(t)
		require.NotEqual(t, before, holdings(t))
		require.Contains(t, holdings(t), "uverbs0")
		if orderly {
			require.NoError(t, p.a.DestroyQP(p.qa))
			require.NoError(t, p.a.DeregMR(p.ma))
			require.Contains(t, holdings(t), "VmPin:\t       0 kB", "deregistration gives the memory back")
		} else {
			p.bufA = nil
			runtime.GC()
			runtime.GC()
			require.NotNil(t, memory.Value(), "a registered slice that was dropped stays")
		}
		require.NoError(t, p.a.Close())
		require.Equal(t, before, holdings(t), name)
		p.bufA = nil
		runtime.GC()
		runtime.GC()
		require.Nil(t, memory.Value(), name)
	}
}

// TestFailedOpenLeavesNothing: there are four descriptors to run out of, one of
// them for a moment only.
func TestFailedOpenLeavesNothing(t *testing.T) {
	kernel(t)
	before := holdings(t)
	var old, low unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) })
	first := must.Get(os.Open("/proc/self/fd"))(t) // the lowest free number
	lowest := int(first.Fd())
	first.Close()
	failures := 0
	for n := lowest; n < lowest+8; n++ {
		low = old
		low.Cur = uint64(n)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
		d, err := uapi.Open(device, uapi.OpenConfig{})
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
		if err == nil {
			require.NoError(t, d.Close())
		} else {
			require.ErrorIs(t, err, syscall.EMFILE)
			failures++
		}
		require.Equal(t, before, holdings(t))
	}
	require.GreaterOrEqual(t, failures, 3)
}

// TestCloseMeetsCalls: Close at any moment of others' calls ends them with an
// error that says so, and leaves nothing.
func TestCloseMeetsCalls(t *testing.T) {
	kernel(t)
	before := holdings(t)
	for round := range 6 {
		p, _ := everythingOpen(t)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		calls := []func() error{
			func() error {
				_, err := p.a.PostWrite(p.qa, p.ma, 0, p.at.Addr, p.at.RKey, 64)
				return err
			},
			func() error { _, err := p.a.PollCQ(p.qa, make([]uapi.WC, 4)); return err },
			func() error { _, err := p.a.WaitCQ(ctx, p.qa, make([]uapi.WC, 4)); return err },
			func() error { _, err := p.a.QueryQP(p.qa); return err },
			func() error { _, err := p.a.QueryDevice(); return err },
			func() error {
				mr, err := p.a.RegMR(make([]byte, 5000), everything)
				if err == nil {
					err = p.a.DeregMR(mr)
				}
				return err
			},
			func() error {
				qp, err := p.a.CreateQP(4, 4)
				if err == nil {
					err = p.a.DestroyQP(qp)
				}
				return err
			},
		}
		started := make(chan struct{}, len(calls))
		errs := make([]error, len(calls))
		var wg sync.WaitGroup
		for i, call := range calls {
			wg.Go(func() {
				errs[i] = call()
				started <- struct{}{}
				for errs[i] == nil || errors.Is(errs[i], syscall.ENOMEM) { // the send queue is full
					errs[i] = call()
				}
			})
		}
		for range min(round+1, len(calls)-1) { // a waiter may not come back
			<-started
		}
		require.NoError(t, p.a.Close())
		wg.Wait()
		cancel()
		for i, err := range errs {
			require.True(t, errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EBADF), "call %d: %v", i, err)
		}
		require.Equal(t, before, holdings(t))
	}
}

// TestKilled: a process's resources are gone with it.
func TestKilled(t *testing.T) {
	kernel(t)
	before := holdings(t)
	var out bytes.Buffer
	cmd := again("hold")
	cmd.SysProcAttr.Credential = nil
	cmd.Stderr = &out
	stdout := must.Get(cmd.StdoutPipe())(t)
	require.NoError(t, cmd.Start())
	line := make([]byte, 16)
	n, err := stdout.Read(line)
	if err != nil || string(line[:n]) != "holding\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // all is in out then
		t.Fatalf("%q, %v: %s", line[:n], err, out.String())
	}
	require.NotEqual(t, before, holdings(t))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for deadline := time.Now().Add(patience); holdings(t) != before; time.Sleep(10 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), holdings(t))
	}
}
