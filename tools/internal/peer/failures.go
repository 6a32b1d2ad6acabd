package peer

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// FailureLog tells on W of clients that were refused or failed, a line for each
// failureLine at most. A line has the number of those that had none before it.
type FailureLog struct {
	W io.Writer

	mu   sync.Mutex
	next time.Time // guarded by mu: when a line may be written
	held int       // guarded by mu: failures that had no line
	last string    // guarded by mu: the last of them
}

const failureLine = time.Second

// Add tells of a client's failure.
func (f *FailureLog) Add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Before(f.next) {
		f.held++
		f.last = cli.OneLine(err)
	} else {
		f.say(cli.OneLine(err), f.held)
		f.next, f.held = now.Add(failureLine), 0
	}
}

func (f *FailureLog) say(text string, others int) {
	if others > 0 {
		text += fmt.Sprintf(" (and %d clients more)", others)
	}
	fmt.Fprintf(f.W, "rdmashim: %s\n", text)
}

// Close tells of those that are left.
func (f *FailureLog) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held > 0 {
		f.say(f.last, f.held-1)
		f.held = 0
	}
}
