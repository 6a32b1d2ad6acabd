//go:build linux && (amd64 || arm64)

package supervise

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
	"github.com/rdmashim/rdmashim/kshim/far"
	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/kerneltest"
	"github.com/rdmashim/rdmashim/tests/must"
)

// patience bounds a hang.
const patience = time.Minute

func eventually(t *testing.T, what func() bool, args ...any) {
	t.Helper()
	require.Eventually(t, what, patience, time.Millisecond, args...)
}

// cq is the queue that a program has just made.
func (b *bed) cq(p *child, name string) driver.CQEvents {
	b.t.Helper()
	require.Equal(b.t, name, p.says())
	defer p.tell("go on")
	return b.dev.LastCQ.Events
}

// kills is how often TestKilled kills.
const kills = 200

// TestOrdinaryCalls: what is not RDMA's is as without a kernel.
func TestOrdinaryCalls(t *testing.T) {
	b := newBed(t)
	alone := b.begin(false, "ordinary").all()
	require.NotEmpty(t, alone)
	require.Equal(t, alone, b.start("ordinary").all())
}

// TestObjectsStay: what a file holds stays as long as a duplicate or a child
// has the file, and goes with the last descriptor.
func TestObjectsStay(t *testing.T) {
	b := newBed(t)
	p := b.start("objects")
	require.Equal(t, "three", p.says())
	require.Equal(t, "ctx 1 pd 3", b.objects())
	p.tell("go on")
	child := must.Get(strconv.Atoi(p.says()))(t)
	must.Get(p.Process.Wait())(t) // the child has the other end of its input
	require.Equal(t, "ctx 1 pd 3", b.objects())
	require.NoError(t, unix.Kill(child, unix.SIGKILL))
	eventually(t, func() bool { return b.objects() == "" && len(b.k.Programs()) == 0 })
}

// TestExecFails: regions outlive an execve that fails.
func TestExecFails(t *testing.T) {
	b := newBed(t)
	p := b.start("stays")
	require.Equal(t, unix.ENOENT.Error(), p.says())
	mem, text := b.dev.LastMR.Mem, make([]byte, len("still there"))
	require.NoError(t, mem.Far.Read(text, mem.Addr))
	require.Equal(t, "still there", string(text))
}

// TestKeptMemory: a program that registers memory and fails to execute in turn
// costs the server some descriptors, and no more.
func TestKeptMemory(t *testing.T) {
	var p process
	var all []*far.Memory
	for range 2 * keptMost {
		all = append(all, far.New(must.Get(os.Open("/proc/self/mem"))(t), os.Getpid()))
		p.keep(all[len(all)-1])
	}
	text := []byte("still there")
	for i, m := range all {
		err := m.Read(make([]byte, len(text)), uint64(uintptr(unsafe.Pointer(&text[0]))))
		require.Equal(t, i >= keptMost, err == nil)
	}
	p.forget()
}

// TestEvents: edge-triggered polls see each event, more come than the pipe has
// room for, in their order, and a queue's unread ones go with it.
func TestEvents(t *testing.T) {
	b := newBed(t)
	p := b.start("events")
	b.cq(p, "cq 7")
	nine := b.cq(p, "cq 9")
	require.Equal(t, "ready 0 0", p.says())
	for range 2 { // one of them unread before
		nine.Completion()
		p.tell("edges")
		require.Equal(t, "1 0", p.says())
	}
	const many = 10_000
	for range many {
		nine.Completion()
	}
	p.tell("5")
	require.Equal(t, "0 5 1", p.says())
	p.tell(strconv.Itoa(many - 3))
	require.Equal(t, "0 9997 0", p.says())
	nine.Completion()
	nine.Completion()
	p.tell("destroy")
	require.Equal(t, "reported 0", p.says(), "of the other queue")
	p.tell("1")
	require.Equal(t, "0 1 1", p.says())
	p.tell("end")
	p.tell("2")
	require.Equal(t, "0 <nil>", p.says(), "the end, which in Linux is EIO")
}

// TestWithdraw: a queue that is destroyed counts the events that were read.
func TestWithdraw(t *testing.T) {
	b := newBed(t)
	p := b.start("events")
	seven, nine := b.cq(p, "cq 7"), b.cq(p, "cq 9")
	p.says()
	for range 3 {
		seven.Completion()
		nine.Completion()
	}
	p.tell("1")
	p.says()
	p.tell("destroy")
	require.Equal(t, "reported 1", p.says())
	p.tell("3")
	require.Equal(t, "0 3 0", p.says())
}

// TestWaitHoldsNobody: a call that waits for an event holds up no other thread,
// waits on when another thread closes its file, as in Linux, and ends with its
// process.
func TestWaitHoldsNobody(t *testing.T) {
	b := newCMBed(t)
	p := b.start("waiter")
	require.Equal(t, "<nil>", p.says())
	require.Equal(t, "opened", p.says())
	p.tell("close")
	require.Equal(t, "closed", p.says())
	eventually(t, func() bool { return b.k.Programs()[0].Files == nil })
	require.NoError(t, p.Process.Kill())
	require.Empty(t, p.all(), "the call was answered")
	eventually(t, func() bool { return len(b.k.Programs()) == 0 })
}

// TestClosedAtOnce: a close is over before the program's next command, as in
// Linux.
func TestClosedAtOnce(t *testing.T) {
	b := newCMBed(t)
	require.Equal(t, "done", b.start("relisten").all())
}

// TestAddHoldsNobody: at each descriptor that one process is given, at which it
// may keep the kernel waiting, another one does all that there is to do, and
// the kernel lists both.
func TestAddHoldsNobody(t *testing.T) {
	b := newCMBed(t)
	var slow atomic.Int32
	adds, free := make(chan string), make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(free) }) }
	b.k.adds = func(c *call) {
		if int32(c.process.pid) != slow.Load() {
			return
		}
		for range 2 { // it is taken, and let go on
			select {
			case adds <- c.opens:
			case <-free:
			}
		}
	}
	one, other := b.start("rounds"), b.start("rounds")
	t.Cleanup(release) // before those that end the programs
	require.Equal(t, "begins", one.says())
	require.Equal(t, "begins", other.says())
	slow.Store(int32(one.Process.Pid))
	one.tell("go on")
	for _, file := range []struct{ name, opens string }{
		{"a device file", "/dev/infiniband/uverbs0"},
		{"a context's events", ""},
		{"a channel", ""},
		{"rdma_cm", managerNode},
		{"a netlink socket", ""},
		{"a directory", "/sys/class/infiniband"},
	} {
		require.Equal(t, file.opens, <-adds)
		went := make(chan bool, 1)
		go func() {
			ok := other.out.Scan()
			_ = b.k.Programs()
			went <- ok
		}()
		other.tell("go on")
		select {
		case ok := <-went:
			require.True(t, ok, file.name)
		case <-time.After(patience):
			require.Fail(t, "a lock is held over ADDFD", file.name)
		}
		<-adds
	}
	require.Equal(t, "done", one.says())
}

// TestNumbersOfDuplicates: the number of a file that lives on by a duplicate is
// the next file's; a program without numbers left is told so.
func TestNumbersOfDuplicates(t *testing.T) {
	b := newBed(t)
	p := b.start("reuse")
	one, two := b.cq(p, "cq 1"), b.cq(p, "cq 2")
	require.Equal(t, "true", p.says())
	two.Completion()
	one.Completion()
	p.tell("go on")
	require.Equal(t, "8 <nil> 1", p.says())
	require.Equal(t, "too many open files true", p.says())
}

// TestDuplicatesPost: doorbells reach the device also by a number below the
// window. Another command by write does not, and what follows does.
func TestDuplicatesPost(t *testing.T) {
	b := newBed(t)
	p := b.start("duplicate")
	b.cq(p, "cq 1")
	require.Equal(t, "made", p.says())
	b.dev.Do(func() {
		for o := range b.dev.Live {
			if q, ok := o.(*kerneltest.QP); ok {
				q.SetState(abi.QPSRTS)
			}
		}
	})
	p.tell("go on")
	for range 5 {
		require.Equal(t, "errno 0", p.says())
	}
	eventually(t, func() bool { return b.dev.Doorbells.Load() == 4 })
	require.Equal(t, "ctx 1 pd 1 cq 1 qp 1", b.objects())
}

// TestKilled: a program that is killed at any moment leaves nothing.
func TestKilled(t *testing.T) {
	b := newCMBed(t)
	descriptors := func() int {
		list := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(list)
	}
	var before int
	for i := range kills {
		p := b.start("churn")
		p.says()
		<-time.After(time.Duration(i%20) * time.Millisecond) // any moment
		require.NoError(t, p.Process.Kill())
		_ = p.Wait()
		p.served <- <-p.served
		eventually(t, func() bool { return b.objects() == "" && len(b.k.Programs()) == 0 })
		if i == 0 {
			before = descriptors()
		}
	}
	eventually(t, func() bool { return descriptors() <= before })
}

// TestCrowd: ten thousand threads that wait are served, hold up nobody, and end
// with their process.
func TestCrowd(t *testing.T) {
	b := newCMBed(t)
	n := 1_000
	if amount.All() {
		n = 10_000
	}
	p := b.start("crowd", strconv.Itoa(n))
	require.Equal(t, "<nil>", p.says())
	require.Equal(t, "wait", p.says())
	other := b.start("events")
	b.cq(other, "cq 7")
	b.cq(other, "cq 9")
	require.Equal(t, "ready 0 0", other.says())
	require.NoError(t, p.Process.Kill())
	eventually(t, func() bool { return len(b.k.Programs()) == 1 })
}

// TestHostile: a program that sends nonsense from fifty threads costs the
// kernel nothing, and another program is served.
func TestHostile(t *testing.T) {
	b := newCMBed(t)
	p := b.start("hostile")
	other := b.start("events")
	b.cq(other, "cq 7")
	b.cq(other, "cq 9")
	require.Equal(t, "ready 0 0", other.says())
	lines := p.all()
	require.True(t, strings.HasSuffix(lines, "done"), "%s", lines)
}

// TestUnwatchedRings: a device file that cannot be watched, as where the user
// has too many watches, is none, and its end is nobody's.
func TestUnwatchedRings(t *testing.T) {
	w := must.Get(newWatcher())(t)
	defer w.close()
	writes := w.writes.fd
	w.writes.fd = -1
	_, _, err := makeRings(&file{program: &program{process: &process{kernel: &Kernel{watch: w}}}})
	w.writes.fd = writes
	require.ErrorIs(t, err, unix.EBADF)
	w.closes.mu.Lock()
	defer w.closes.mu.Unlock()
	require.Empty(t, w.closes.calls)
	require.Empty(t, w.closes.marks)
}
