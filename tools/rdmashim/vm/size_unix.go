//go:build unix

package vm

import (
	"os"
	"os/signal"
	"syscall"
)

// watchSize calls changed whenever the terminal's size changes, until stop.
func watchSize(changed func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-signals:
				changed()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
