//go:build linux || darwin

package conform

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tests/must"
)

// patience is how long a test waits for an event that must come. A guest on a
// busy machine may stand still for seconds; nothing that passes takes as long.
const patience = 30 * time.Second

// rig is a case's workbench: the kernel under test, and the observation that
// the case writes.
type rig struct {
	testing.TB
	sys    *system
	lines  []string
	mapped [][]byte // to be unmapped at the very end

	cmFiles []*cmFile
}

// newRig makes the rig of a case. Cleanups that the case adds run before this
// one's.
func newRig(t testing.TB, sys *system) *rig {
	r := &rig{TB: t, sys: sys}
	t.Cleanup(func() {
		for _, mem := range r.mapped {
			if err := syscall.Munmap(mem); err != nil {
				t.Errorf("munmap: %v", err)
			}
		}
	})
	return r
}

// joinIP has the device's interface take packets to a group.
func (r *rig) joinIP(group netip.Addr) {
	if r.sys.joinIP == nil {
		return
	}
	r.Cleanup(must.Get(r.sys.joinIP(group))(r))
}

// say adds a line to the observation.
func (r *rig) say(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

// result adds a line that tells how a call ended, and says whether it
// succeeded.
func (r *rig) result(call string, err error) bool {
	r.say("%s: %s", call, errText(err))
	return err == nil
}

// number, posted and events add a line for a call that returns a number as
// well: r.number("Poll")(cq.Poll(wc)).
func (r *rig) number(call string) func(int, error) {
	return func(n int, err error) { r.say("%s: %d, %s", call, n, errText(err)) }
}

func (r *rig) posted(call string) func(int, error) {
	return func(n int, err error) { r.say("%s: %d posted, %s", call, n, errText(err)) }
}

func (r *rig) events(call string) func(uint32, error) {
	return func(n uint32, err error) { r.say("%s: %s, %d events", call, errText(err), n) }
}

// must ends the test when a step of its setting fails.
func (r *rig) must(err error) {
	require.NoError(r, err)
}

// errOf is the error of a call whose value does not count.
func errOf[T any](_ T, err error) error { return err }

type namedErrno struct {
	errno syscall.Errno
	name  string
}

// errnos are those that the observations name.
var errnos = []namedErrno{
	{syscall.EACCES, "EACCES"}, {syscall.EADDRINUSE, "EADDRINUSE"}, {syscall.EADDRNOTAVAIL, "EADDRNOTAVAIL"}, {syscall.EAGAIN, "EAGAIN"},
	{syscall.ECONNABORTED, "ECONNABORTED"}, {syscall.ECONNREFUSED, "ECONNREFUSED"}, {syscall.ECONNRESET, "ECONNRESET"}, {syscall.ENOTCONN, "ENOTCONN"}, {syscall.EAFNOSUPPORT, "EAFNOSUPPORT"}, {syscall.EBADF, "EBADF"}, {syscall.EBUSY, "EBUSY"},
	{syscall.EEXIST, "EEXIST"}, {syscall.EFAULT, "EFAULT"}, {syscall.EINVAL, "EINVAL"}, {syscall.EIO, "EIO"},
	{syscall.EISCONN, "EISCONN"}, {syscall.EMSGSIZE, "EMSGSIZE"}, {syscall.ENETUNREACH, "ENETUNREACH"}, {syscall.ENODATA, "ENODATA"},
	{syscall.ENODEV, "ENODEV"}, {syscall.ENOENT, "ENOENT"}, {syscall.ENOMEM, "ENOMEM"}, {syscall.ENOSPC, "ENOSPC"}, {syscall.ENOSYS, "ENOSYS"},
	{syscall.ENOTSUP, "EOPNOTSUPP"}, {syscall.EOPNOTSUPP, "EOPNOTSUPP"}, {syscall.EOVERFLOW, "EOVERFLOW"}, {syscall.EPERM, "EPERM"}, {syscall.EPROTO, "EPROTO"},
	{syscall.EPROTONOSUPPORT, "EPROTONOSUPPORT"}, {524, "ENOTSUPP"}, {syscall.ETIMEDOUT, "ETIMEDOUT"},
}

// errText is how an error is written: as its errno, whatever the words around
// it.
func errText(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, net.ErrClosed) && errors.Is(err, syscall.EBADF):
		return "EBADF, closed"
	case errors.Is(err, net.ErrClosed):
		return "closed"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for _, e := range errnos {
		if errors.Is(err, e.errno) {
			return e.name
		}
	}
	return err.Error()
}

// process gives the case a process on a side, which ends with it.
func (r *rig) process(side int) kshim.Kernel {
	k, exit := r.sys.process(side)
	r.Cleanup(exit)
	return k
}

// open opens the side's device; the device closes with the case.
func (r *rig) open(side int) *verbs.Context {
	ctx := must.Get(verbs.Open(r.process(side), r.sys.device[side]))(r)
	r.Cleanup(func() {
		if err := ctx.Close(); err != nil {
			r.Errorf("closing %s: %v", r.sys.device[side], err)
		}
	})
	return ctx
}

// withDeadline is a context that ends when patience does.
func (r *rig) withDeadline() context.Context { return r.within(patience) }

func (r *rig) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	r.Cleanup(cancel)
	return ctx
}

// eventually waits until cond holds, and reports whether it did in time.
func eventually(cond func() bool) bool {
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.After(patience); !cond(); {
		select {
		case <-look.C:
		case <-end:
			return false
		}
	}
	return true
}

// start makes a call in a goroutine of its own, and gives its error.
func start(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// awaitBlocked waits until a goroutine blocks in the function.
func awaitBlocked(function string) bool {
	stacks := make([]byte, 1<<20)
	return eventually(func() bool {
		for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			head, calls, _ := strings.Cut(g, "\n")
			if strings.Contains(calls, function) && !strings.Contains(head, "[run") { // running, runnable
				return true
			}
		}
		return false
	})
}

// test is one case of the suite.
type test struct {
	name string // group/what
	run  func(r *rig)
}

func (t test) group() string {
	group, _, _ := strings.Cut(t.name, "/")
	return group
}
