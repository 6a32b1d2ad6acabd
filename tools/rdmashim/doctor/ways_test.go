package doctor

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// TestWays breaks what the ways of rdmashim run need.
func TestWays(t *testing.T) {
	all := notif.Support{WaitKillable: true, SyncWakeUp: true, Yama: "0"}
	refuse := func(err error) func(*bench) {
		return func(b *bench) { b.Supervisor = func() (notif.Support, error) { return notif.Support{}, err } }
	}
	has := func(change func(*notif.Support)) func(*bench) {
		return func(b *bench) {
			s := all
			change(&s)
			b.Supervisor = func() (notif.Support, error) { return s, nil }
		}
	}
	for _, c := range []struct {
		name, check string
		do          func(*bench)
		status      Status
		says, fix   string
	}{
		{"no compiler", "library", func(b *bench) { b.Library = func() error { return errors.New("no C compiler") } }, Warn, "no C compiler", "gcc"},
		{"a listener", "supervisor", refuse(notif.ErrBusy), Fail, "a listener is there already", "outside"},
		{"a listener of WSL2", "supervisor", func(b *bench) {
			refuse(notif.ErrBusy)(b)
			b.k.Files["proc/version"] = "Linux version 6.6.87.2-microsoft-standard-WSL2\n"
		}, Fail, "a listener is there already", "networkingMode=nat"},
		{"old kernel", "supervisor", refuse(fmt.Errorf("%w (%w)", notif.ErrUnsupported, syscall.EINVAL)), Fail, "Linux 5.9", "boot Linux"},
		{"gVisor", "supervisor", func(b *bench) {
			refuse(fmt.Errorf("%w (%w)", notif.ErrUnsupported, syscall.EINVAL))(b)
			b.k.Files["proc/version"] = "Linux version 4.19.0-gvisor\n"
		}, Fail, "no user notification", "runc"},
		{"a profile", "supervisor", refuse(fmt.Errorf("%w (%w)", notif.ErrUnsupported, syscall.EPERM)), Fail, "no user notification", "profile"},
		{"Yama 3", "supervisor", refuse(fmt.Errorf("kernel.yama.ptrace_scope is 3: %w", syscall.EPERM)), Fail, "ptrace_scope is 3", "ptrace_scope=1"},
		{"another system", "supervisor", refuse(errors.New("it needs Linux")), Fail, "needs Linux", "amd64"},
		{"Yama 1", "memory", has(func(s *notif.Support) { s.Yama = "1" }), Pass, "descendants only", ""},
		{"Linux 5.15", "calls", has(func(s *notif.Support) { s.WaitKillable, s.SyncWakeUp = false, false }), Warn, "no WAIT_KILLABLE_RECV", "5.19"},
		{"Linux 6.1", "calls", has(func(s *notif.Support) { s.SyncWakeUp = false }), Pass, "6.6", ""},
		{"few descriptors", "descriptors", func(b *bench) { b.Descriptors = func() (int64, error) { return 800, nil } }, Warn, "32 of them", "ulimit -n 1024"},
		{"too few", "descriptors", func(b *bench) { b.Descriptors = func() (int64, error) { return 768, nil } }, Fail, "768 files", "ulimit -n 1024"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, library := range []error{syscall.ENOENT, nil} {
				b := newBench()
				b.Library = func() error { return library }
				has(func(*notif.Support) {})(b)
				if c.check != "library" {
					require.Equal(t, Pass, way(RunWays(&b.System), c.check).Status, "unbroken")
				}
				c.do(b)
				r := RunWays(&b.System)
				want := c.status
				if want == Fail && library == nil {
					want = Warn // the other way is there
				}
				requireCheck(t, way(r, c.check), want, c.says, c.fix)
				require.Equal(t, want != Fail, r.OK)
			}
		})
	}
}

func way(r *Report, name string) Check {
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return Check{}
}
