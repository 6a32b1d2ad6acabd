package vm

import (
	"context"
	"fmt"
	"maps"
	"time"
)

// budget is time that guests may take. It passes only while the host lets the
// guests run: what their threads wait for a processor of a busy host is not
// counted, so that a limit means the same work on every host. Time in which a
// guest sleeps counts, since a guest that hangs may sleep.
type budget struct {
	gone context.Context // done when nothing is left; its cause is a *spentError
	stop context.CancelFunc
}

// spentError is the cause of contexts that end with a budget.
type spentError struct{ limit, withheld time.Duration }

func (e *spentError) Error() string { return fmt.Sprintf("the limit of %v is used up", e.limit) }

// budgetTick is how often a budget looks at the guests' threads.
const budgetTick = time.Second

// startBudget starts the time of a limit; pids are QEMU's processes.
func startBudget(limit time.Duration, pids func() []int) *budget {
	gone, cancel := context.WithCancelCause(context.Background())
	b := &budget{gone: gone, stop: func() { cancel(nil) }}
	go func() {
		ticker := time.NewTicker(min(budgetTick, limit))
		defer ticker.Stop()
		a := account{left: limit, at: time.Now(), waits: waiting(pids())}
		for a.left > 0 {
			select {
			case <-gone.Done():
				return
			case now := <-ticker.C:
				a.pass(now, waiting(pids()))
			}
		}
		cancel(&spentError{limit, a.withheld.Round(time.Second)})
	}()
	return b
}

// account is what is left of a limit.
type account struct {
	left, withheld time.Duration
	at             time.Time                // of the last reading
	waits          map[string]time.Duration // at that time
}

// pass takes the time since the last reading off the limit, less the longest
// wait of a thread.
func (a *account) pass(now time.Time, waits map[string]time.Duration) {
	passed, lost := now.Sub(a.at), time.Duration(0)
	for thread, waited := range waits {
		lost = max(lost, waited-a.waits[thread])
	}
	lost = min(lost, passed)
	a.at, a.waits = now, waits
	a.left, a.withheld = a.left-(passed-lost), a.withheld+lost
}

// bound is ctx that ends with the budget, too. A nil budget is without limit.
func (b *budget) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if b == nil {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.gone, func() { cancel(context.Cause(b.gone)) })
	return ctx, func() { stop(); cancel(nil) }
}

// waiting sums up, by thread, how long the threads of processes waited for a
// processor since they began. Systems that do not tell have no threads.
func waiting(pids []int) map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, pid := range pids {
		maps.Copy(all, threadWaits(pid))
	}
	return all
}
