package top

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rdmashim/rdmashim/tools/rdmashim/internal/cli"
)

// interval is a flag: seconds, or a duration with its unit.
type interval time.Duration

// Bounds of an interval: below the first nothing but reading happens, above the
// last somebody forgot a unit.
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
	var n, pid int
	every := interval(time.Second)
	cmd := &cobra.Command{
		Use:   "top [DEVICE]",
		Short: "Watch what devices and queue pairs do: rates, losses, windows",
		Long: `top shows again and again what ports and queue pairs did since the last time: bytes,
packets and messages a second, packets sent again, timeouts, NAKs, receivers that were
not ready, drops by cause, window and round trip.

It reads the soft devices of all programs of this user that have some open (but with
stats=off), and the kernel's devices. A program that does not begin to answer within
200 ms, because it is stopped, is left out and named. DEVICE is a name (soft0, rxe0), what programs open
(soft:10.0.0.1) or an address. Of queue pairs of kernel devices only packet sequence
numbers are known; ~ marks the rates that follow from them, without what is sent again.

On a terminal it redraws, elsewhere frames follow each other; --json prints a line of
JSON for each.`,
		Example: "  rdmashim top\n  rdmashim top soft0 -i 0.5\n  rdmashim top -j -n 10",
		Args:    cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 0 || pid < 0 {
				return cli.Usagef("top: a count and a process number are not negative")
			}
			s := source()
			s.PID = pid
			if len(args) > 0 {
				s.Device = args[0]
			}
			o := Options{Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), JSON: asJSON, Count: n, Interval: time.Duration(every)}
			o.Screen = screen(o.Out)
			return Run(cmd.Context(), s, o)
		},
	}
	cmd.ValidArgsFunction = cli.CompleteFirst(completeSource(source))
	f := cmd.Flags()
	f.BoolVarP(&asJSON, "json", "j", false, "print a line of JSON each time")
	f.IntVarP(&n, "count", "n", 0, "end after so many times; 0: never")
	f.VarP(&every, "interval", "i", "time between, in seconds or with a unit")
	f.IntVarP(&pid, "pid", "p", 0, "devices and queue pairs of this process only")
	return cmd
}

// completeSource are the devices that can be read now.
func completeSource(source func() *Source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		list, _, _ := source().Read(cmd.Context())
		for _, d := range list {
			name := d.Device
			if d.Kind == "host" {
				name = d.Name
			}
			names = append(names, name)
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// screen gives the size of the terminal that w is; nil if it is none that can
// be redrawn.
func screen(w io.Writer) func() (width, height int) {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
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
