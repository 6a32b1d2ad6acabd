package vm

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// ExitError says that a command ran in the guest and did not end with status 0.
type ExitError struct {
	Node   int
	Code   int            // exit status, when no signal ended it
	Signal syscall.Signal // not 0: the signal that ended it
}

// Status is the status that a shell would report: the command's, or 128 and
// the signal's number.
func (e *ExitError) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("the command on node %d was ended by signal %d (%v)", e.Node, int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("the command on node %d ended with status %d", e.Node, e.Code)
}

// CommandError says that a command could not be run in the guest.
type CommandError struct {
	Node     int
	Reason   string
	NotFound bool // there is no such command
}

func (e *CommandError) Error() string { return fmt.Sprintf("node %d: %s", e.Node, e.Reason) }

// MissingError says that something that must be installed is not there.
type MissingError struct {
	What    string // the missing part
	Install string // the remedy
}

func (e *MissingError) Error() string { return fmt.Sprintf("%s; %s", e.What, e.Install) }

// KernelError says that the guest's kernel complained: its log holds a warning,
// a bug or an oops.
type KernelError struct {
	Node  int
	Lines []string // its output, from the first complaint on
	Log   string   // file that holds the whole log
}

func (e *KernelError) Error() string {
	return fmt.Sprintf("the kernel of node %d complained (whole log: %s): %s", e.Node, e.Log, strings.Join(e.Lines, " | "))
}

// TimeoutError says that a guest was ended because its time was up.
type TimeoutError struct {
	Node  int
	Doing string // its work at that time
	After time.Duration
	// Limit is the limit that was used up, and Withheld the time, not counted,
	// in which the host was too busy to let the guests run. Zero: the caller's
	// context ended.
	Limit, Withheld time.Duration
	Log             string // file that holds the guest's log
}

func (e *TimeoutError) Error() string {
	why := "the caller's time was up"
	if e.Limit != 0 {
		why = fmt.Sprintf("the guests' limit of %v was used up", e.Limit)
	}
	if e.Withheld != 0 {
		why += fmt.Sprintf(", not counting %v in which the host was too busy to run them", e.Withheld)
	}
	return fmt.Sprintf("node %d was ended after %v while %s: %s; its log: %s", e.Node, e.After, e.Doing, why, e.Log)
}

// Timeout says that this is one, as net.Error does.
func (e *TimeoutError) Timeout() bool { return true }

// DiedError says that a guest ended before it was told to.
type DiedError struct {
	Node  int
	Doing string
	Cause string // QEMU's message, or the log's last line
	Log   string
}

func (e *DiedError) Error() string {
	return fmt.Sprintf("the guest of node %d ended while %s: %s; its log: %s", e.Node, e.Doing, e.Cause, e.Log)
}
