package udp

import "time"

// longAgo is a deadline that interrupts.
var longAgo = time.Unix(1, 0)

// conduit guards the uses of the socket against Close, so that the descriptor
// is not another file's meanwhile. After Close its methods return an error that
// Is net.ErrClosed.
type conduit interface {
	// Control calls f with the descriptor; f does not block.
	Control(f func(fd uintptr)) error
	// Write calls f until it returns true, and waits in between until the
	// socket's buffer has room.
	Write(f func(fd uintptr) bool) error
	// Wait blocks until there may be something to read, be it an error. One
	// goroutine at a time waits.
	Wait() error
	// Sleep is Wait for d at most, and blocks the thread.
	Sleep(d time.Duration) error
	// Interrupt ends a Wait or Sleep that blocks, or the next one.
	Interrupt()
	// Doze blocks a thread until there may be something to read, or for d.
	Doze(d time.Duration)
	Close() error
}
