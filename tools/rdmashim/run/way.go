package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/kshim/supervise/broker"
	"github.com/rdmashim/rdmashim/kshim/supervise/notif"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// The ways to reach a program.
const (
	byLibrary    = "library"
	bySupervisor = "supervisor"
)

// under tells a program that its calls are answered: a filter has one listener,
// so that a run within needs, and can have, no other.
const under = "RDMASHIM_SUPERVISED"

// choose returns the way to reach a program: the one that is asked for, else
// the library where it can. It says on w why it does not take the library.
func choose(asked, server, program string, w io.Writer) (string, error) {
	switch {
	case asked != "" && asked != byLibrary && asked != bySupervisor:
		return "", cli.Usagef("--way is library or supervisor, not %q", asked)
	case server != "" && asked == byLibrary:
		return "", cli.Usagef("programs reach --kernel by the supervisor: leave out --way")
	case server != "" || broker.Again() || asked == "" && os.Getenv(under) != "":
		asked = bySupervisor
	}
	_, why := preload.Look(program)
	var none *exec.Error // no way runs such a file
	if isNone := errors.As(why, &none); isNone || asked != "" {
		if asked == bySupervisor && !isNone {
			why = nil
		}
		return asked, why
	}
	if why == nil {
		why = preload.Possible()
	}
	if why == nil {
		return byLibrary, nil
	}
	if _, supervisor := notif.Check(); supervisor != nil {
		return "", fmt.Errorf("%w; and the supervisor cannot reach it either: %w", why, supervisor)
	}
	fmt.Fprintf(w, "rdmashim: its system calls are answered (--way supervisor): %v\n", why)
	return bySupervisor, nil
}
