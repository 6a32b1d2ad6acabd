package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Source is where readings come from.
type Source struct {
	// Processes reads the soft devices of this user's processes, or of those
	// that pids name. Errors are of processes that cannot be read.
	Processes func(ctx context.Context, pids ...int) ([]stats.Device, []error)
	// Kernel opens the manager of the kernel's devices.
	Kernel func() (*netlinkmgr.Manager, error)
	// ProcessOf is the process of a thread, since the kernel shows threads;
	// nil: they are the same.
	ProcessOf func(thread int) int

	Device string // of this name only; "" for all
	PID    int    // of this process only: its soft devices and its queue pairs on those of kernels; 0 for all

	manager *netlinkmgr.Manager
}

// Here is the machine that the program runs on.
func Here() *Source {
	return &Source{Processes: stats.ReadAll, Kernel: netlinkmgr.Open, ProcessOf: processOf}
}

// Read reads all wanted devices, the kernel's first. Unreadable ones are left
// out and told in warnings. An error means that there is nothing at all to be
// read.
func (s *Source) Read(ctx context.Context) (list []stats.Device, warnings []error, err error) {
	host, err := s.kernel(ctx)
	if err != nil {
		warnings = append(warnings, err)
	}
	var pids []int
	if s.PID != 0 {
		pids = []int{s.PID}
	}
	soft, errs := s.Processes(ctx, pids...)
	if s.PID != 0 && len(soft)+len(errs) == 0 {
		soft, _ = s.Processes(ctx) // a supervised program's queue pairs are its kernel's
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	warnings = append(warnings, errs...)
	for _, d := range append(host, soft...) {
		if s.wants(&d) {
			list = append(list, d)
		}
	}
	return list, warnings, nil
}

// First is Read, but that there must be a device that was asked for: the error
// names those that are.
func (s *Source) First(ctx context.Context) (list []stats.Device, warnings []error, err error) {
	list, warnings, err = s.Read(ctx)
	if err != nil || len(list) > 0 || s.Device == "" && s.PID == 0 {
		return list, warnings, err
	}
	if s.PID != 0 {
		for _, w := range warnings {
			var silent *stats.SilentError
			if errors.As(w, &silent) {
				return nil, nil, w
			}
		}
	}
	all := *s
	all.Device, all.PID = "", 0
	if list, warnings, err = all.Read(ctx); err != nil {
		return nil, nil, err
	}
	return nil, nil, errors.Join(append([]error{s.missing(list)}, warnings...)...)
}

// missing says that a device that was asked for is not among those that there
// are.
func (s *Source) missing(list []stats.Device) error {
	what := "device"
	if s.Device != "" {
		what += " " + s.Device
	}
	if s.PID != 0 {
		what += fmt.Sprintf(" of process %d", s.PID)
	}
	if len(list) == 0 {
		return fmt.Errorf("no %s: no program of this user has a soft device open, and the kernel has none", what)
	}
	var known []string
	for _, d := range list {
		name := d.Name
		if d.PID != 0 {
			name += fmt.Sprintf(" (%s of process %d)", d.Device, d.PID)
		}
		known = append(known, name)
	}
	return fmt.Errorf("no %s; there is %s", what, strings.Join(known, ", "))
}

// wants reports whether a device is among those that were asked for, and takes
// out of a kernel's, Linux's or a supervised program's, what is not.
func (s *Source) wants(d *stats.Device) bool {
	if s.Device != "" && !named(d, s.Device) {
		return false
	}
	if s.PID == 0 || s.PID == d.PID {
		return true
	}
	d.QueuePairs = slices.DeleteFunc(slices.Clone(d.QueuePairs), func(q stats.QueuePair) bool { return q.PID != s.PID })
	return len(d.QueuePairs) > 0
}

// named reports whether a device is meant: by the kernel's name, by what Open
// takes, or by its address.
func named(d *stats.Device, name string) bool {
	if name == d.Name || name == d.Device {
		return true
	}
	return d.Address.IsValid() && (name == d.Address.String() || name == d.Address.Addr().String())
}
