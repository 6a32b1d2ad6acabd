package sample

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

// counting is a client's work: calls of Add by callers at once.
type counting struct {
	calls   int64
	callers int
	timeout time.Duration // of a call
	midway  func() error  // done once when half of the calls were begun; may be nil
	begun   atomic.Int64  // calls
	once    sync.Once     // of midway
}

// CounterReport is the view of a client of the counter.
type CounterReport struct {
	Calls        int64   `json:"calls"`
	Callers      int     `json:"callers"`
	Acknowledged int64   `json:"acknowledged"` // known to have been executed
	Unknown      int64   `json:"unknown"`      // executed once or not at all
	Counted      int64   `json:"counted"`      // by the counter meanwhile
	Cuts         uint64  `json:"cuts"`         // of connections, by the server
	Connections  uint64  `json:"connections"`  // of the client's session
	Repeats      uint64  `json:"repeats"`      // requests that were sent again
	Replays      uint64  `json:"replays"`      // answers that the server sent again
	Attaches     uint64  `json:"attaches"`     // repeats that met their call running
	Seconds      float64 `json:"seconds"`
	Seed         uint64  `json:"seed,omitempty"` // of the client's faults
}

func (r *CounterReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d calls by %d callers in %.2f s: %d acknowledged, %d unknown; the counter went up by %d\n",
		r.Calls, r.Callers, r.Seconds, r.Acknowledged, r.Unknown, r.Counted)
	if r.Cuts > 0 {
		fmt.Fprintf(&b, "the server cut %d connections: %d calls sent again, %d answered again, %d met running\n", r.Cuts, r.Repeats, r.Replays, r.Attaches)
	}
	if r.Seed > 0 {
		fmt.Fprintf(&b, "faults with seed %d\n", r.Seed)
	}
	return b.String()
}

// check holds that each call was executed at most once, and those that were
// acknowledged exactly once.
func (r *CounterReport) check() error {
	if r.Counted < r.Acknowledged || r.Counted > r.Acknowledged+r.Unknown {
		return fmt.Errorf("the counter went up by %d; %d calls were acknowledged and of %d it is unknown: at most once is broken", r.Counted, r.Acknowledged, r.Unknown)
	}
	return nil
}

// run makes the calls, and compares what the counter counted. Nobody else may
// add meanwhile.
func (c *counting) run(ctx context.Context, client samplepb.CounterClient) (*CounterReport, error) {
	before, err := c.read(ctx, client, false)
	if err != nil {
		return nil, err
	}
	r := &CounterReport{Calls: c.calls, Callers: c.callers}
	began := time.Now()
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var acknowledged, unknown atomic.Int64
	var callers sync.WaitGroup
	for range c.callers {
		callers.Go(func() {
			for c.next(cancel) && calling.Err() == nil {
				switch known, err := c.add(calling, client); {
				case err != nil:
					cancel(err)
				case known:
					acknowledged.Add(1)
				default:
					unknown.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if err := context.Cause(calling); err != nil {
		return nil, err
	}
	r.Seconds = time.Since(began).Seconds()
	r.Acknowledged, r.Unknown = acknowledged.Load(), unknown.Load()
	after, err := c.read(ctx, client, true)
	if err != nil {
		return nil, err
	}
	r.Counted, r.Cuts, r.Replays, r.Attaches = after.Value-before.Value, after.Cuts, after.Replays, after.Attaches
	return r, r.check()
}

// next begins a call, unless all were begun.
func (c *counting) next(cancel context.CancelCauseFunc) bool {
	n := c.begun.Add(1)
	if n > c.calls/2 && c.midway != nil {
		c.once.Do(func() {
			if err := c.midway(); err != nil {
				cancel(err)
			}
		})
	}
	return n <= c.calls
}

// add makes one call, and reports whether it is known to have been executed.
func (c *counting) add(ctx context.Context, client samplepb.CounterClient) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	_, err = client.Add(ctx, &samplepb.AddRequest{N: 1}, grpc.WaitForReady(true))
	switch fate, code := rpc.FateOf(err), status.Code(err); {
	case err == nil, errors.Is(fate, rpc.FateExecuted):
		return true, nil
	case fate != nil, code == codes.DeadlineExceeded, code == codes.Unavailable:
		return false, nil
	}
	return false, err
}

// readAgain is how often a connection may break under a reading, which is
// idempotent.
const readAgain = 10

// read asks the counter. With wait its server may be starting, again.
func (c *counting) read(ctx context.Context, client samplepb.CounterClient, wait bool) (r *samplepb.ReadReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for range readAgain {
		r, err = client.Read(ctx, &samplepb.ReadRequest{}, grpc.WaitForReady(wait))
		if status.Code(err) != codes.Unavailable || ctx.Err() != nil {
			break
		}
	}
	return r, err
}
