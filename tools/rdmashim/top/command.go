package top

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// interval is a flag: seconds, or a duration with its unit.
type interval time.Duration

// Bounds of an interval: below the first the program only reads, above the last
// the user forgot a unit.
const (
	minInterval = 50 * time.Millisecond
	maxInterval = 24 * time.Hour
)

func (i *interval) Set(text string) error {
	d, err := time.ParseDuration(text)
	if seconds, e := strconv.ParseFloat(text, 64); e == nil && seconds >= 0 && seconds < maxInterval.Seconds()+1 {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < minInterval || d > maxInterval {
		return fmt.Errorf("not seconds or a duration of %v … %v; write 0.5 or 500ms", minInterval, maxInterval)
	}
	*i = interval(d)
	return nil
}

func (i *interval) String() string { return time.Duration(*i).String() }
func (i *interval) Type() string   { return "seconds" }

// Command is 'rdmashim top'.
func Command(source func() *Source) *cobra.Command {
	var asJSON bool
	var n uint
	every := interval(time.Second)
	var wanted func(args []string) *Source
	cmd := &cobra.Command{
		Use:   "top [DEVICE]",
		Short: "Watch what devices and queue pairs do: rates, losses, windows",
		Long: `top shows again and again what ports and queue pairs did since the last time:
bytes, packets and messages a second, packets sent again, timeouts, NAKs,
receivers that were not ready, drops by cause, window and round trip. WAY is how
a queue pair sends: shm by memory shared with a device of this host, else net.
SHMTX and SHMRX are the parts of TX and RX that go and come by such memory.

It reads the soft devices of all programs of this user that have some open (but
with stats=off), and the kernel's devices. A program that does not begin to
answer within 200 ms, because it is stopped, is left out and named. DEVICE is a
name (soft0, rxe0), what programs open (soft:10.0.0.1) or an address. Of queue
pairs of kernel devices only packet sequence numbers are known; ~ marks the
rates that follow from them, without what is sent again.

On a terminal it redraws, elsewhere frames follow each other; --json prints a
line of JSON for each.`,
		Example: "  rdmashim top\n  rdmashim top soft0 -i 0.5\n  rdmashim top -j -n 10",
		Args:    cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := Options{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), JSON: asJSON, Count: int(n), Interval: time.Duration(every)}
			o.Screen = screen(o.Out)
			return Run(cmd.Context(), wanted(args), o)
		},
	}
	wanted = choose(cmd, source)
	f := cmd.Flags()
	f.BoolVarP(&asJSON, "json", "j", false, "print a line of JSON each time")
	f.UintVarP(&n, "count", "n", 0, "end after so many times; 0: never")
	f.VarP(&every, "interval", "i", "time between, in seconds or with a unit")
	return cmd
}

// choose adds --pid to a command that reads from a source; wanted limits the
// source to what the command line asks for.
func choose(cmd *cobra.Command, source func() *Source) (wanted func(args []string) *Source) {
	pid := cmd.Flags().UintP("pid", "p", 0, "devices and queue pairs of this process only")
	return func(args []string) *Source {
		s := source()
		s.PID, s.Device = int(*pid), strings.Join(args, "")
		return s
	}
}

// screen gives the size of the terminal that w is; nil if it is none that can
// be redrawn.
func screen(w io.Writer) func() (width, height int) {
	f, ok := w.(*os.File)
	if !ok || cli.Dumb() || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	}
}
