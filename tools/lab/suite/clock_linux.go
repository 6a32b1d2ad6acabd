package suite

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil sleeps with the thread: the runtime's timers are a millisecond
// late while nothing else goes on.
func sleepUntil(t time.Time) {
	if left := time.Until(t); left > 0 {
		ts := unix.NsecToTimespec(left.Nanoseconds())
		_ = unix.Nanosleep(&ts, nil) // a signal makes a message early
	}
}
