package peer

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// FailureLog writes to W which clients were refused or failed, a line for each
// failureLine at most. A line has the number of those that had none before it.
type FailureLog struct {
	W io.Writer

	mu   sync.Mutex
	next time.Time // guarded by mu: when a line may be written
	left int       // guarded by mu: failures that had no line
	last string    // guarded by mu: the last of them
}

const failureLine = time.Second

// Add writes a client's failure, or counts it.
func (f *FailureLog) Add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Before(f.next) {
		f.left++
		f.last = cli.OneLine(err)
	} else {
		f.write(cli.OneLine(err), f.left)
		f.next, f.left = now.Add(failureLine), 0
	}
}

func (f *FailureLog) write(text string, others int) {
	if others > 0 {
		text += fmt.Sprintf(" (and %d clients more)", others)
	}
	fmt.Fprintf(f.W, "rdmashim: %s\n", text)
}

// Close writes those that are left.
func (f *FailureLog) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left > 0 {
		f.write(f.last, f.left-1)
		f.left = 0
	}
}
