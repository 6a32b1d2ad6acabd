package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// limited is a measurement with the time of one processor, as in a container
// with a limit: this process and those that it starts are in a control group
// meanwhile.
func limited[R any](run func(context.Context) (R, error)) func(context.Context) (R, error) {
	return func(ctx context.Context) (r R, err error) {
		leave, err := enterLimit()
		if err != nil {
			return r, &notHere{fmt.Sprintf("no control group with a limit of processor time: %v (it takes root and a writable /sys/fs/cgroup)", err)}
		}
		defer func() { err = errors.Join(err, leave()) }()
		return run(ctx)
	}
}

// limits are the files by which the versions of control groups limit the time
// of processors, in µs a period.
var limits = []struct{ root, file, value string }{
	{"/sys/fs/cgroup", "cpu.max", "100000 100000"},       // version 2
	{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"}, // version 1
}

// enterLimit makes a control group and moves this process into it; leave moves
// it back.
func enterLimit() (leave func() error, err error) {
	var errs []error
	for _, l := range limits {
		home, err := ownGroup(l.root)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		group := filepath.Join(home, fmt.Sprintf("rdmashim-bench-%d", os.Getpid()))
		if err := os.Mkdir(group, 0o700); err != nil {
			errs = append(errs, err)
			continue
		}
		leave := func() error { return errors.Join(enterGroup(home), os.Remove(group)) }
		if err = write(filepath.Join(group, l.file), l.value); err == nil {
			err = enterGroup(group)
		}
		if err == nil {
			return leave, nil
		}
		errs = append(errs, err, os.Remove(group))
	}
	return nil, errors.Join(errs...)
}

// ownGroup is the group of this process below the root of a hierarchy.
func ownGroup(root string) (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	want := "" // version 2
	if base := filepath.Base(root); base != "cgroup" {
		want = base
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), want) {
			return filepath.Join(root, parts[2]), nil
		}
	}
	return "", fmt.Errorf("this process is in no control group of %s", root)
}

// enterGroup moves this process into a group.
func enterGroup(group string) error {
	return write(filepath.Join(group, "cgroup.procs"), strconv.Itoa(os.Getpid()))
}

// write writes to a file of a control group, which is there in a group only.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
