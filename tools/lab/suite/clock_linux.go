package suite

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// alarm wakes a goroutine in time. The runtime's timers are a millisecond late
// while nothing else goes on; a thread that sleeps in a system call keeps one
// of the few processors from the goroutines that are measured, and the
// runtime's monitor awake.
type alarm struct {
	fd   int
	file *os.File
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	return &alarm{fd, os.NewFile(uintptr(fd), "timerfd")}, nil
}

// sleepUntil returns at t.
func (a *alarm) sleepUntil(t time.Time) {
	left := time.Until(t)
	if left <= 0 {
		return
	}
	var expirations [8]byte
	err := unix.TimerfdSettime(a.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(left.Nanoseconds())}, nil)
	if err == nil {
		_, err = a.file.Read(expirations[:])
	}
	if err != nil {
		time.Sleep(left)
	}
}

func (a *alarm) close() { a.file.Close() }
