package stats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// How long a process may take until it begins to answer, and for the whole answer, which a client waits for once it
// has begun: many queue pairs take their time. A process that is stopped never begins.
const (
	silence    = 200 * time.Millisecond
	answerTime = 2 * time.Second
)

// maxAsked is how many processes are asked at a time: each takes a descriptor.
const maxAsked = 256

// SilentError says that a process did not begin to answer in time. The JSON keys are stable.
type SilentError struct {
	PID     int    `json:"pid"`
	Process string `json:"process,omitempty"` // its program, where /proc tells it
	Stopped bool   `json:"stopped"`           // by a signal or a debugger, where /proc tells it
}

func (e *SilentError) Error() string {
	name := fmt.Sprintf("process %d", e.PID)
	if e.Process != "" {
		name += " (" + e.Process + ")"
	}
	why := ""
	if e.Stopped {
		why = fmt.Sprintf(": it is stopped; kill -CONT %d lets it go on", e.PID)
	}
	return fmt.Sprintf("%s does not answer within %v%s", name, silence, why)
}

// Timeout implements net.Error's.
func (e *SilentError) Timeout() bool { return true }

// ReadAll reads the soft devices of all processes of this user, or of those that pids name, in the order of their
// process numbers. It asks all at once. The errors are of processes that could not be read, of the silent ones a
// *SilentError; the sockets of those that are gone it removes.
func ReadAll(ctx context.Context, pids ...int) ([]Device, []error) {
	paths, err := Processes(pids...)
	if err != nil {
		return nil, []error{err}
	}
	answers, failed := make([]*Answer, len(paths)), make([]error, len(paths))
	var procs sync.WaitGroup
	room := make(chan struct{}, maxAsked)
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
