//go:build linux && (amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tests/must"
)

// These tests need no RDMA: a pipe serves as a file that events are read from,
// and as one that commands are written to. The rest is in guesttest.

func pipe(t *testing.T) (r, w int) {
	t.Helper()
	var fds [2]int
	require.NoError(t, syscall.Pipe2(fds[:], syscall.O_CLOEXEC))
	return fds[0], fds[1]
}

// eventPipe is an event file whose events are written to w.
func eventPipe(t *testing.T) (e *eventFile, w int) {
	t.Helper()
	r, w := pipe(t)
	require.True(t, hold(r))
	e = must.Get(newEventFile(r, "pipe"))(t)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		syscall.Close(w)
		process.mu.Lock()
		defer process.mu.Unlock()
		require.NotContains(t, process.files, r)
	})
	return e, w
}

func TestEventsAreReadOneByOne(t *testing.T) {
	e, w := eventPipe(t)
	buf := make([]byte, 8)
	for _, text := range []string{"one", "two"} {
		must.Get(syscall.Write(w, []byte(text)))(t)
		n := must.Get(e.Read(t.Context(), buf))(t)
		require.Equal(t, text, string(buf[:n]))
	}
	must.Fail(e.Read(t.Context(), nil))(t, syscall.EINVAL)
}

// TestReadersAndContexts: a reader's context ends that reader alone, and takes
// nothing from the next one.
func TestReadersAndContexts(t *testing.T) {
	e, w := eventPipe(t)
	ended, cancelEnded := context.WithCancel(t.Context())
	cancelEnded()
	must.Fail(e.Read(ended, make([]byte, 8)))(t, context.Canceled)

	for range 200 {
		const readers = 4
		type result struct {
			n   int
			err error
		}
		var cancels [readers]context.CancelFunc
		results := make(chan result, readers)
		for i := range readers {
			var ctx context.Context
			ctx, cancels[i] = context.WithCancel(t.Context())
			go func() {
				n, err := e.Read(ctx, make([]byte, 8))
				results <- result{n, err}
			}()
		}
		for _, cancel := range cancels[1:] {
			cancel()
		}
		for range readers - 1 {
			require.ErrorIs(t, (<-results).err, context.Canceled)
		}
		must.Get(syscall.Write(w, []byte("event")))(t)
		require.Equal(t, result{5, nil}, <-results)
		cancels[0]()
	}
}

func TestCloseWakesReaders(t *testing.T) {
	e, _ := eventPipe(t)
	errs := make(chan error, 3)
	for range cap(errs) {
		go func() {
			_, err := e.Read(context.Background(), make([]byte, 8))
			errs <- err
		}()
	}
	require.NoError(t, e.Close())
	for range cap(errs) {
		err := <-errs
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, err, syscall.EBADF)
	}
	require.NoError(t, e.Close())
	must.Fail(e.Write(nil))(t, net.ErrClosed)
	require.ErrorIs(t, e.Ioctl(nil), net.ErrClosed)
}

// TestEventFileNeedsThePoller: a file that the netpoller does not take is
// refused, and closed.
func TestEventFileNeedsThePoller(t *testing.T) {
	file := must.Get(syscall.Open(os.DevNull, syscall.O_RDONLY|syscall.O_CLOEXEC, 0))(t)
	hold(file)
	must.Fail(newEventFile(file, "null"))(t, syscall.EPERM)
	require.ErrorIs(t, syscall.Close(file), syscall.EBADF, "closed already")
	require.True(t, hold(file), "and free again")
	unhold(file)
}

// TestCloseAndNumbers: a number that Close gave back is never written to,
// though another file gets it at once.
func TestCloseAndNumbers(t *testing.T) {
	cmd := bytes.Repeat([]byte{'x'}, 16)
	for range 300 {
		r, w := pipe(t)
		hold(w)
		d := &device{path: "pipe", fd: w}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					if _, err := d.Write(cmd); err != nil {
						if !errors.Is(err, net.ErrClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		wg.Go(func() { // keeps the writers going
			buf := make([]byte, 1<<16)
			for {
				if n, err := syscall.Read(r, buf); n == 0 || err != nil {
					return
				}
			}
		})
		require.NoError(t, d.Close())
		otherR, otherW := pipe(t)
		require.Contains(t, []int{otherR, otherW}, w, "the number is used again")
		wg.Wait()
		require.NoError(t, syscall.SetNonblock(otherR, true))
		_, err := syscall.Read(otherR, make([]byte, 1))
		require.ErrorIs(t, err, syscall.EAGAIN, "something was written to the other file")
		for _, fd := range []int{r, otherR, otherW} {
			syscall.Close(fd)
		}
	}
}

// TestCloseWaitsForCalls: the number stays this file's while a call is inside.
func TestCloseWaitsForCalls(t *testing.T) {
	r, w := pipe(t)
	defer syscall.Close(r)
	hold(w)
	d := &device{path: "pipe", fd: w}
	big := make([]byte, 1<<20) // more than a pipe holds
	written := make(chan error, 1)
	go func() {
		_, err := d.Write(big)
		written <- err
	}()
	// Once there is something to read the call is inside, and stays.
	ready := []unix.PollFd{{Fd: int32(r), Events: unix.POLLIN}}
	_, err := retry(func() (int, error) { return unix.Poll(ready, -1) })
	require.NoError(t, err)
	closed := make(chan struct{})
	go func() {
		_ = d.Close()
		close(closed)
	}()
	for d.mu.TryRLock() { // until Close waits
		d.mu.RUnlock()
		select {
		case <-closed:
			t.Fatal("Close did not wait")
		default:
		}
	}
	buf := make([]byte, 1<<16)
	for left := len(big); left > 0; {
		n := must.Get(syscall.Read(r, buf))(t)
		left -= n
	}
	require.NoError(t, <-written)
	<-closed
}

func TestWrite(t *testing.T) {
	r, w := pipe(t)
	defer syscall.Close(r)
	hold(w)
	bell := make([]byte, abi.CmdHdrSize+abi.PostSendSize)
	(&abi.CmdHdr{Command: abi.CmdPostSend}).Put(bell)
	require.True(t, isDoorbell(bell))
	require.False(t, isDoorbell(nil))
	require.False(t, isDoorbell([]byte{byte(abi.CmdModifyQP), 0, 0, 0}))
	for _, raw := range []bool{false, true} {
		d := &device{path: "pipe", fd: w, rawBell: raw}
		got := make([]byte, 100)
		write := func() {
			if n, err := d.Write(bell); n != len(bell) || err != nil {
				t.Error(n, err)
			}
			_, _ = syscall.Read(r, got)
		}
		require.Zero(t, testing.AllocsPerRun(100, write))
		require.Equal(t, bell, got[:len(bell)])
	}
	d := &device{path: "pipe", fd: w}
	require.ErrorIs(t, d.Ioctl(make([]byte, abi.IoctlHdrSize)), syscall.ENOTTY)
	require.NoError(t, d.Close())
	for _, call := range []func() error{
		func() error { _, err := d.Write(bell); return err },
		func() error { return d.Ioctl(bell) },
		func() error { _, err := d.Mmap(0, 4096); return err },
		func() error { _, err := d.Read(t.Context(), bell); return err },
	} {
		require.ErrorIs(t, call(), net.ErrClosed)
		require.ErrorIs(t, call(), syscall.EBADF)
	}
	require.NoError(t, d.Close())
}

// TestIoctlStaysInItsArgument: the kernel believes the header.
func TestIoctlStaysInItsArgument(t *testing.T) {
	d := &device{path: "null", fd: -1}
	require.ErrorIs(t, d.Ioctl(nil), net.ErrClosed)
	null := must.Get(syscall.Open(os.DevNull, syscall.O_RDWR|syscall.O_CLOEXEC, 0))(t)
	hold(null)
	d = &device{path: "null", fd: null}
	defer d.Close()
	arg := make([]byte, abi.IoctlHdrSize)
	(&abi.IoctlHdr{Length: abi.IoctlHdrSize + 1}).Put(arg)
	require.ErrorIs(t, d.Ioctl(arg), syscall.EFAULT)
	require.ErrorIs(t, d.Ioctl(arg[:20]), syscall.EFAULT)
	(&abi.IoctlHdr{Length: abi.IoctlHdrSize}).Put(arg)
	require.ErrorIs(t, d.Ioctl(arg), syscall.ENOTTY)
}

// TestMappings: a mapping outlives its file, and memory that is none is not
// unmapped.
func TestMappings(t *testing.T) {
	f := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	defer f.Close()
	require.NoError(t, f.Truncate(8192))
	fd := must.Get(syscall.Dup(int(f.Fd())))(t)
	hold(fd)
	d := &device{path: "file", fd: fd}
	m := must.Get(d.Mmap(4096, 4096))(t)
	require.NoError(t, d.Close())
	copy(m, "shared")
	got := make([]byte, 6)
	must.Get(f.ReadAt(got, 4096))(t)
	require.Equal(t, "shared", string(got))
	require.ErrorIs(t, d.Munmap(m[:100]), syscall.EINVAL)
	require.ErrorIs(t, d.Munmap(m[1:]), syscall.EINVAL)
	require.ErrorIs(t, d.Munmap(make([]byte, 4096)), syscall.EINVAL)
	require.NoError(t, d.Munmap(m))
	require.ErrorIs(t, d.Munmap(m), syscall.EINVAL)
	require.Empty(t, process.maps)
}

// TestPins: pinned memory stays though nothing refers to it, and goes when it
// is released.
func TestPins(t *testing.T) {
	d := &device{fd: -1}
	addr, release := d.Pin(nil)
	require.Zero(t, addr)
	release()

	kept, memory, release := pinSomething(d)
	runtime.GC()
	runtime.GC()
	require.NotNil(t, memory.Value())
	require.Equal(t, kept, *memory.Value())
	release()
	release()
	runtime.GC()
	runtime.GC()
	require.Nil(t, memory.Value())
	require.Empty(t, process.pins)
}

// TestDroppedPin: memory stays pinned though its release was dropped, too: the
// device may be writing there.
func TestDroppedPin(t *testing.T) {
	_, memory, release := pinSomething(&device{fd: -1})
	runtime.KeepAlive(release)
	release = nil
	runtime.GC()
	runtime.GC()
	require.NotNil(t, memory.Value())
	require.Len(t, process.pins, 1)
	for p := range process.pins {
		p.pinner.Unpin()
	}
	clear(process.pins)
}

//go:noinline
func pinSomething(d *device) (byte, weak.Pointer[byte], func()) {
	buf := make([]byte, 100000)
	buf[0] = 7
	addr, release := d.Pin(buf)
	again, releaseAgain := d.Pin(buf[:1])
	if again != addr {
		panic("the same memory lies at two addresses")
	}
	releaseAgain()
	return buf[0], weak.Make(&buf[0]), release
}

// TestPinnedStack: pinned memory has left the stack, so that its address holds
// when the stack moves.
func TestPinnedStack(t *testing.T) {
	d := &device{fd: -1}
	done := make(chan [2]uint64)
	go func() {
		var local [64]byte
		before, release := d.Pin(local[:])
		defer release()
		grow(5000)
		after, releaseAgain := d.Pin(local[:])
		defer releaseAgain()
		done <- [2]uint64{before, after}
	}()
	at := <-done
	require.Equal(t, at[0], at[1])
}

func grow(n int) int {
	var fill [512]byte
	fill[n%512] = byte(n)
	if n == 0 {
		return 0
	}
	return grow(n-1) + int(fill[(n+7)%512])
}

func TestAttributes(t *testing.T) {
	k := must.Get(New(Options{}))(t)
	names, err := k.ReadDir("/sys/class/")
	if errors.Is(err, syscall.ENOENT) {
		t.Skip("no /sys/class; mount sysfs: ", err)
	}
	require.NoError(t, err)
	require.True(t, slices.IsSorted(names))
	require.Contains(t, names, "net")
	f := must.Get(k.Open("/sys/class/net/../net/lo/mtu"))(t)
	buf := make([]byte, 100)
	n := must.Get(f.Read(t.Context(), buf))(t)
	require.True(t, strings.HasSuffix(string(buf[:n]), "\n"))
	must.Fail(f.Read(t.Context(), buf))(t, io.EOF)
	require.NoError(t, f.Close())

	for path, errno := range map[string]syscall.Errno{
		"/sys/class/net/lo":           syscall.EISDIR,
		"/sys/class/net/none":         syscall.ENOENT,
		"/sys/class":                  syscall.ENOENT,
		"/sys/class/../../etc/passwd": syscall.ENOENT,
		"/etc/passwd":                 syscall.ENOENT,
		"":                            syscall.ENOENT,
		"/dev/infiniband/none":        syscall.ENOENT,
		"/dev/infiniband/../null":     syscall.ENOENT,
	} {
		must.Fail(k.Open(path))(t, errno, path)
	}
	for path, errno := range map[string]syscall.Errno{
		"/sys/class/none": syscall.ENOENT, "/sys/class/net/lo/mtu": syscall.ENOTDIR, "/sys": syscall.ENOENT, "/": syscall.ENOENT,
	} {
		must.Fail(k.ReadDir(path))(t, errno, path)
	}
}

// TestAdoptRefuses: a number that is no event file is left alone.
func TestAdoptRefuses(t *testing.T) {
	k := must.Get(New(Options{}))(t)
	r, w := pipe(t)
	defer syscall.Close(w)
	for _, fd := range []int{-1, 1 << 30, r} {
		must.Fail(k.Adopt(int32(fd)))(t, syscall.EBADF)
	}
	require.NoError(t, syscall.Close(r), "still open")
}

// TestOpenErrorsSayWhatToDo: the messages that users meet.
func TestOpenErrorsSayWhatToDo(t *testing.T) {
	for errno, says := range map[syscall.Errno]string{
		syscall.EACCES: "udev",
		syscall.ENOENT: "--device /dev/infiniband",
		syscall.ENXIO:  "has gone",
	} {
		err := openError("/dev/infiniband/uverbs0", errno)
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "open /dev/infiniband/uverbs0")
	}
	require.Equal(t, "open /sys/class/x: no such file or directory", openError("/sys/class/x", syscall.ENOENT).Error())
}
