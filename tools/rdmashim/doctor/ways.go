package doctor

import (
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
)

// ways are the checks of what 'rdmashim run' needs.
var ways = []struct {
	name string
	run  func(*System) Check
}{
	{"library", checkLibrary},
	{"supervisor", checkSupervisor},
	{"memory", checkMemory},
	{"calls", checkCalls},
	{"descriptors", checkWindow},
}

// RunWays examines the ways in which a program can be put on soft devices. What
// fails of the supervisor is a warning where the library is there.
func RunWays(s *System) *Report {
	r := &Report{Device: "rdmashim run"}
	for _, w := range ways {
		c := w.run(s)
		c.Name = w.name
		if c.Status == Fail && len(r.Checks) > 0 && r.Checks[0].Status == Pass {
			c.Status = Warn
		}
		r.Checks = append(r.Checks, c)
	}
	r.OK = r.count(Fail) == 0
	return r
}

// checkLibrary looks at the way for C programs.
func checkLibrary(s *System) Check {
	if err := s.Library(); err != nil {
		return warn("apt-get install gcc libc6-dev, and install Go", "C programs do not get the fast way: %v", err)
	}
	return pass("C programs of glibc get the mini kernel as a library, the fast way")
}

// checkSupervisor looks at the way for all programs.
func checkSupervisor(s *System) Check {
	_, err := s.Supervisor()
	const detail = "no program's system calls can be answered: %v"
	version := s.text("proc/version") + s.Kernel.Release
	switch {
	case err == nil:
		return pass("system calls of every program can be answered: static, musl, Go, children of a fork")
	case errors.Is(err, notif.ErrBusy) && strings.Contains(strings.ToLower(version), "microsoft"):
		return fail("set networkingMode=nat in .wslconfig, then: wsl --shutdown", detail, err)
	case errors.Is(err, notif.ErrBusy):
		return fail("start it outside of what holds the listener: another rdmashim run, or a container's manager", detail, err)
	case errors.Is(err, notif.ErrUnsupported) && strings.Contains(strings.ToLower(version+s.text("proc/1/cmdline")), "gvisor"):
		return fail("run the container with runc; gVisor has no listeners", detail, err)
	case errors.Is(err, notif.ErrUnsupported) && errors.Is(err, syscall.EPERM):
		return fail("allow seccomp in the container's profile, as docker's and podman's own do", detail, err)
	case errors.Is(err, notif.ErrUnsupported):
		return fail("boot Linux 5.9 or later; 5.19 has all that it needs", detail, err)
	case errors.Is(err, syscall.EPERM):
		return fail("sysctl -w kernel.yama.ptrace_scope=1", detail, err)
	}
	return fail("use Linux on amd64 or arm64", detail, err)
}

// checkMemory looks how the supervisor reaches the memory of programs.
func checkMemory(s *System) Check {
	support, err := s.Supervisor()
	switch {
	case err != nil:
		return skip("there is no supervisor")
	case support.Yama == "1":
		return pass("/proc/PID/mem, of descendants only (kernel.yama.ptrace_scope 1): a server of --kernel is sent it")
	}
	return pass("/proc/PID/mem")
}

// checkCalls looks for what later versions of Linux brought to the supervisor.
func checkCalls(s *System) Check {
	support, err := s.Supervisor()
	switch {
	case err != nil:
		return skip("there is no supervisor")
	case !support.WaitKillable:
		return warn("boot Linux 5.19 or later", "a signal may come between a call and its answer, and the call is made twice: %v", support)
	case !support.SyncWakeUp:
		return pass("calls are answered; Linux 6.6 is faster: no SYNC_WAKE_UP")
	}
	return pass("calls are answered once, signals or not")
}

// The descriptors whose calls are held have numbers from low on, below high
// (supervise.Window).
const low, high = 768, 1024

// checkWindow looks whether these numbers can be had.
func checkWindow(s *System) Check {
	const fix = "ulimit -n 1024"
	if s.Descriptors == nil {
		return skip("this system tells no limit")
	}
	limit, err := s.Descriptors()
	switch {
	case err != nil:
		return skip("%v", err)
	case limit >= 0 && limit <= low:
		return fail(fix, "device files have the numbers %d to %d under the supervisor, and this process may have %d files open", low, high-1, limit)
	case limit >= 0 && limit < high:
		return warn(fix, "device files have the numbers %d to %d under the supervisor: %d of them can be open", low, high-1, limit-low)
	}
	return pass("device files have the numbers %d to %d under the supervisor", low, high-1)
}

// text is a file's content, empty if it cannot be read.
func (s *System) text(name string) string {
	if s.Kernel.Root == nil {
		return ""
	}
	b, _ := fs.ReadFile(s.Kernel.Root, name)
	return string(b)
}
