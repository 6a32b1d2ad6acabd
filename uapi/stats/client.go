package stats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// clientPatience is how long a process may take to answer: one that is stopped never does.
const clientPatience = 2 * time.Second

// ReadAll reads the soft devices of all processes of this user, in the order of their process numbers. The errors are of
// processes that did not answer; the sockets of those that are gone it removes.
func ReadAll(ctx context.Context) ([]Device, []error) {
	paths, err := Processes()
	if err != nil {
		return nil, []error{err}
	}
	answers, failed := make([]*Answer, len(paths)), make([]error, len(paths))
	var procs sync.WaitGroup
	room := make(chan struct{}, 16)
	for i, path := range paths {
		procs.Go(func() {
			room <- struct{}{}
			answers[i], failed[i] = ReadProcess(ctx, path)
			<-room
		})
	}
	procs.Wait()
	var list []Device
	var errs []error
	for i, a := range answers {
		switch {
		case failed[i] == nil:
			list = append(list, a.Devices...)
		case !errors.Is(failed[i], errGone):
			errs = append(errs, failed[i])
		}
	}
	slices.SortStableFunc(list, func(a, b Device) int {
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list, errs
}

// errGone says that a socket's process is.
var errGone = errors.New("nobody listens: the process is gone")
